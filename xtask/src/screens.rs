//! `cargo xtask screens`: pictures of `psitrace top`, in text for docs/top.md and in colour for the README.

use std::fs;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{document, process, svg, workspace::Workspace};

/// The picture that the README shows.
const README: &str = "tree";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only print them.
    #[arg(long)]
    dry_run: bool,
}

/// A picture, as psi-screens takes it.
#[derive(Debug, Deserialize)]
struct Picture {
    name: String,
    columns: usize,
    lines: usize,
    /// With escape sequences.
    screen: String,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    process::require_root("screens")?;
    if !process::is_installed("tmux") {
        bail!("the terminal is tmux's; run `cargo xtask setup` or install it");
    }
    let taken = workspace.run_test_program("psi-screens", &[])?;
    if !taken.status.success() {
        bail!("no pictures ({}): what was wrong stands above", taken.status);
    }
    let pictures = String::from_utf8(taken.stdout).context("pictures are text")?;
    for line in pictures.lines() {
        let picture: Picture = serde_json::from_str(line).context("cannot read a picture")?;
        let lines = svg::parse(&picture.screen);
        let text = block(&lines);
        println!("{}\n{text}", picture.name);
        if options.dry_run {
            continue;
        }
        let document = workspace.root.join("docs/top.md");
        document::replace(&document, &format!("screens {}", picture.name), &text)?;
        if picture.name == README {
            let image = svg::image(&lines, picture.columns, picture.lines);
            fs::write(workspace.root.join("docs/top.svg"), image).context("cannot write docs/top.svg")?;
        }
    }
    Ok(())
}

/// As text in a document.
fn block(lines: &[Vec<svg::Span>]) -> String {
    let line = |spans: &Vec<svg::Span>| spans.iter().map(|span| span.text.as_str()).collect::<String>();
    let mut text = "```\n".to_owned();
    for line in lines.iter().map(line) {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text + "```\n"
}
