//! Configuration files: defaults for options, by command.
//!
//! A key is an option's name. What to trace stands first and is for all commands that attach; what is for one command is in
//! its table, `[dump]` or `[bench.flush]`.

use std::{
    env, fs, io, mem,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, Args as _, Command, error::ErrorKind};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::cli::{self, Tracing};

/// Commands' options that say what one run does. As defaults they could not be taken back on the command line.
const NO_DEFAULTS: [(&str, &str); 11] = [
    ("disable", "pid"),
    ("dump", "begin"),
    ("dump", "count"),
    ("dump", "duration"),
    ("dump", "end"),
    ("dump", "output"),
    ("dump", "replay"),
    ("enable", "pid"),
    ("record", "duration"),
    ("rstat", "duration"),
    ("top", "replay"),
];

/// Adds the defaults that the configuration files have.
///
/// # Errors
/// A line that names the file, the line and the key.
pub(crate) fn apply(command: Command) -> Result<Command, String> {
    files().into_iter().try_fold(command, |command, path| {
        match read(&path) {
            Ok(text) => apply_file(command, &path, &text),
            // None; or in a folder of somebody else's, as with a HOME that was kept across a change of user.
            Err(_) if fs::metadata(&path).is_err() => Ok(command),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    })
}

/// A file, if it is one that ends, and soon.
fn read(path: &Path) -> io::Result<String> {
    const LARGEST: u64 = 1 << 20;
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if metadata.len() > LARGEST {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    fs::read_to_string(path)
}

/// The files, what comes later wins.
fn files() -> Vec<PathBuf> {
    // As the XDG Base Directory Specification has it: a relative path is none.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    [Some(PathBuf::from("/etc")), own]
        .into_iter()
        .flatten()
        .map(|folder| folder.join("psitrace/config.toml"))
        .collect()
}

fn apply_file(mut command: Command, path: &Path, text: &str) -> Result<Command, String> {
    let file = File { path, text };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        file.error(at, error.message())
    })?;
    let is_table = |value: &Spanned<DeValue<'_>>| matches!(value.get_ref(), DeValue::Table(_));
    // What is for one command comes later and wins, wherever it stands.
    for (key, value) in table.get_ref().iter().filter(|(_, value)| !is_table(value)) {
        let default = file.default(&Tracing::augment_args(Command::new("psitrace")), key, value)?;
        let has_it = |command: &Command| command.get_arguments().any(|arg| *arg.get_id() == *default.0);
        for command in command.get_subcommands_mut().filter(|command| has_it(command)) {
            set_default(command, &default);
        }
    }
    for (key, value) in table.get_ref() {
        if let DeValue::Table(table) = value.get_ref() {
            file.apply(&mut command, key, table)?;
        }
    }
    Ok(command)
}

/// An option's id, and its default.
type Default = (String, Vec<String>);

fn set_default(command: &mut Command, (id, values): &Default) {
    *command = mem::take(command).mut_arg(id, |arg| arg.required(false).default_values(values.clone()));
}

/// A file, for its errors.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn error(&self, at: usize, what: &str) -> String {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        format!("{} line {line}: {what}", self.path.display())
    }

    /// The table of one of the command's commands.
    fn apply(&self, command: &mut Command, name: &Spanned<impl AsRef<str>>, table: &DeTable<'_>) -> Result<(), String> {
        let at = name.span().start;
        let name = name.get_ref().as_ref();
        let known = || command.get_subcommands().filter(|command| !command.is_hide_set());
        if !known().any(|command| command.get_name() == name) {
            let nearest = nearest(name, known().map(Command::get_name));
            return Err(self.error(at, &format!("no command `{name}`; {nearest}")));
        }
        let Some(command) = command.find_subcommand_mut(name) else {
            return Ok(());
        };
        for (key, value) in table {
            match value.get_ref() {
                DeValue::Table(table) if command.has_subcommands() => self.apply(command, key, table)?,
                _ => {
                    let default = self.default(command, key, value)?;
                    set_default(command, &default);
                }
            }
        }
        Ok(())
    }

    /// One key of a command.
    fn default(
        &self,
        command: &Command,
        key: &Spanned<impl AsRef<str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Default, String> {
        let at = key.span().start;
        let key = key.get_ref().as_ref();
        let options = || {
            let all = command.get_arguments();
            all.filter(|arg| !arg.is_hide_set() && arg.get_long().is_some())
        };
        let Some(arg) = options().find(|arg| arg.get_long() == Some(key)) else {
            let nearest = nearest(key, options().filter_map(Arg::get_long));
            return Err(self.error(at, &format!("no option `{key}`; {nearest}")));
        };
        if NO_DEFAULTS.contains(&(command.get_name(), key)) {
            let what = format!("{key} is not a default: give it on the command line");
            return Err(self.error(at, &what));
        }
        let values = values(arg, value.get_ref()).map_err(|what| self.error(at, &format!("{key}: {what}")))?;
        if !matches!(arg.get_action(), ArgAction::SetTrue) {
            check(command, key, &values).map_err(|what| self.error(at, &format!("{key}: {what}")))?;
        }
        Ok((arg.get_id().to_string(), values))
    }
}

/// A value as it would stand on the command line.
fn values(arg: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, &'static str> {
    let word = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        _ => Err("expected a text or a number"),
    };
    match (arg.get_action(), value) {
        (ArgAction::SetTrue, DeValue::Boolean(is_set)) => Ok(vec![is_set.to_string()]),
        (ArgAction::SetTrue, _) => Err("expected true or false"),
        (ArgAction::Append, DeValue::Array(values)) => values.iter().map(|value| word(value.get_ref())).collect(),
        _ => Ok(vec![word(value)?]),
    }
}

/// Lets the command line's own rules judge the values.
fn check(command: &Command, key: &str, values: &[String]) -> Result<(), String> {
    let words = values.iter().map(|value| format!("--{key}={value}"));
    let words = ["psitrace".to_owned()].into_iter().chain(words);
    match command.clone().try_get_matches_from(words) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) => {
            Err(cli::line(&error))
        }
        // Whatever else is missing may be on the command line.
        _ => Ok(()),
    }
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let similarity = |known: &str| strsim::jaro_winkler(known, name);
    let found = known.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    found.map_or_else(
        || "there are none".to_owned(),
        |found| format!("the nearest is `{found}`"),
    )
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;
    use crate::cli::Cli;

    fn parse(texts: &[&str], arguments: &[&str]) -> Result<String, String> {
        let command = texts.iter().try_fold(Cli::command(), |command, text| {
            apply_file(command, Path::new("/x/config.toml"), text)
        })?;
        let words = ["psitrace"].iter().chain(arguments);
        let matches = command.try_get_matches_from(words).map_err(|error| cli::line(&error))?;
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        Ok(format!("{cli:?}"))
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_a_later_file_over_an_earlier_one() {
        let system = "hierarchy = \"memory\"\nmax-cgroups = 9\n[dump]\ninterval = \"7s\"\nformat = \"csv\"\n\
                      [top]\nflat = true\n[record]\noutput = \"/x/y\"\n[compare]\ncgroup = [\"/a\", \"/b\"]\n";
        let own = "[dump]\ninterval = \"8s\"\ntop = 3\n";
        for (texts, arguments, words) in [
            (
                &[system][..],
                &["dump"][..],
                &["interval: 7s", "format: Csv", "\"memory\"", "max_cgroups: Some(9)"][..],
            ),
            (
                &[system, own],
                &["dump"],
                &["interval: 8s", "format: Csv", "top: Some(3)"],
            ),
            (&[system, own], &["dump", "--interval", "9s"], &["interval: 9s"]),
            (&[system], &["dump", "--hierarchy", "v2"], &["\"v2\""]),
            // Defaults for what the recording has already decided are no contradiction.
            (&[system], &["dump", "--replay", "f"], &["replay: Some(\"f\")"]),
            (&[system], &["disable", "/a"], &["Disable"]),
            (
                &[
                    "no-irq = true\ntrack = [\"/a\", \"/b\"]\n[check]\nhierarchy = \"cpu\"\n",
                    "hierarchy = \"v2\"\n",
                ],
                &["check"],
                &["\"v2\"", "no_irq: true", "/b"],
            ),
            (
                &["hierarchy = \"memory\"\n[check]\nhierarchy = \"cpu\"\n"],
                &["check"],
                &["\"cpu\""],
            ),
            (
                &["[bench.flush]\ncgroups = 5\n[bench]\ndepth = { pairs = 7 }\n"],
                &["bench", "flush"],
                &["cgroups: 5"],
            ),
            (&[system], &["top"], &["flat: true"]),
            (&[], &["top"], &["flat: false"]),
            (&[system], &["record"], &["output: \"/x/y\""]),
            (&[system], &["compare"], &["[\"/a\", \"/b\"]"]),
            (&[system], &["compare", "--cgroup", "/c"], &["[\"/c\"]"]),
        ] {
            let parsed = parse(texts, arguments).expect("it parses");
            for word in words {
                assert!(parsed.contains(word), "{arguments:?}: expected {word}, saw {parsed}");
            }
        }
    }

    #[test]
    fn errors_name_file_line_and_key() {
        for (text, line, words) in [
            ("hierarchy =\n", 1, &[][..]),
            ("\n[dump]\nintervall = \"1s\"\n", 3, &["`intervall`", "`interval`"]),
            ("[dump]\n\ninterval = \"1x\"\n", 3, &["interval:", "1x", "500ms"]),
            ("[dump]\ninterval = true\n", 2, &["interval:", "text or a number"]),
            ("[dump]\nformat = \"xml\"\n", 2, &["format:", "xml"]),
            (
                "[dump]\nfields = \"path,cpu.sum\"\n",
                2,
                &["fields:", "cpu.sum", "cpu.some"],
            ),
            ("[bench.flush]\ncgroups = 0\n", 2, &["cgroups:"]),
            ("[dump]\ndepth = 1979-05-27\n", 2, &["depth:"]),
            ("[top]\nflat = 1\n", 2, &["flat:", "true or false"]),
            ("[dumb]\n", 1, &["`dumb`", "`dump`"]),
            ("# nothing\ninterval = \"1s\"\n", 2, &["`interval`"]),
            ("max-cgroups = \"many\"\n", 1, &["max-cgroups:", "many"]),
            ("[dump]\nalso-record = \"f\"\n", 2, &["`also-record`"]),
            ("[bench.flush]\ncgroup = 5\n", 2, &["`cgroup`", "`cgroups`"]),
            ("[bench.flash]\n", 1, &["`flash`", "`flush`"]),
            ("[bench.load]\n", 1, &["`load`"]),
            ("[bench]\npairs = 5\n", 2, &["`pairs`", "there are none"]),
            ("[dump.interval]\n", 1, &["interval:", "text or a number"]),
            ("[dump]\ntop = 1\ntop = 2\n", 3, &["duplicate"]),
        ] {
            let error = parse(&[text], &["dump"]).expect_err(text);
            let expected = format!("/x/config.toml line {line}: ");
            assert!(
                error.starts_with(&expected),
                "{text:?}: expected {expected}, saw {error}"
            );
            for word in words {
                assert!(error.contains(word), "{text:?}: expected {word}, saw {error}");
            }
        }
    }

    #[test]
    fn what_one_run_does_is_no_default() {
        for (command, option) in NO_DEFAULTS {
            let root = Cli::command();
            let of_command = root.find_subcommand(command).expect(command);
            let exists = of_command.get_arguments().any(|arg| arg.get_long() == Some(option));
            assert!(exists, "{command} has no option {option}");
            let text = format!("[{command}]\n{option} = \"1s\"\n");
            let error = parse(&[&text], &["dump"]).expect_err(&text);
            assert!(
                error.starts_with(&format!("/x/config.toml line 2: {option} is not a default")),
                "{text:?}: saw {error}"
            );
        }
    }
}
