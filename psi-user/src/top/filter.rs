//! Which cgroups are looked for.

use globset::{GlobBuilder, GlobMatcher};

use super::names::label;

/// A text within the path, or a glob if it has one's characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    text: String,
    glob: Option<GlobMatcher>,
}

impl Filter {
    /// Capital letters make a difference only if there are any. A glob that does not begin with / may begin at any
    /// name of a path; as elsewhere, `*` and `?` stay within a name and `**` does not.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let glob = text.contains(['*', '?', '[', '{']).then(|| {
            let whole = if text.starts_with('/') || text.starts_with("**") {
                text.to_owned()
            } else {
                format!("**/{text}")
            };
            GlobBuilder::new(&whole)
                .literal_separator(true)
                .case_insensitive(!has_capitals(text))
                .build()
        });
        match glob.transpose() {
            Ok(glob) => Ok(Self {
                text: text.to_owned(),
                glob: glob.map(|glob| glob.compile_matcher()),
            }),
            Err(error) => Err(error.kind().to_string()),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_active(&self) -> bool {
        !self.text.is_empty()
    }

    /// Whether a path matches, as it is or as it is shown.
    pub(super) fn matches(&self, path: &str) -> bool {
        let Self { text, glob } = self;
        if text.is_empty() {
            return true;
        }
        if let Some(glob) = glob {
            return glob.is_match(path);
        }
        let within = |path: &str| {
            if has_capitals(text) {
                path.contains(text.as_str())
            } else {
                contains_ignoring_case(path, text)
            }
        };
        within(path) || within(&label(path, false))
    }
}

fn has_capitals(text: &str) -> bool {
    text.chars().any(char::is_uppercase)
}

fn contains_ignoring_case(path: &str, lower: &str) -> bool {
    if path.is_ascii() && lower.is_ascii() {
        return path
            .as_bytes()
            .windows(lower.len())
            .any(|part| part.eq_ignore_ascii_case(lower.as_bytes()));
    }
    path.to_lowercase().contains(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&'static str> {
        let filter = Filter::new(text).expect("a good pattern");
        let paths = [
            "/system.slice",
            "/system.slice/Nginx.service",
            "/web/db-1",
            "/web/db-1/x",
            "/Größe",
            "/a\\x2db",
        ];
        paths.into_iter().filter(|path| filter.matches(path)).collect()
    }

    #[test]
    fn texts_match_anywhere_and_globs_names() {
        assert_eq!(found("").len(), 6);
        assert_eq!(found("nginx"), ["/system.slice/Nginx.service"]);
        assert_eq!(found("Nginx"), ["/system.slice/Nginx.service"]);
        assert!(found("NGINX").is_empty());
        assert_eq!(found("größe"), ["/Größe"]);
        assert_eq!(found("a-b"), ["/a\\x2db"]);
        assert_eq!(found("db-*"), ["/web/db-1"]);
        assert_eq!(found("/web/**"), ["/web/db-1", "/web/db-1/x"]);
        assert_eq!(found("/web/*"), ["/web/db-1"]);
        assert_eq!(found("nginx.*"), ["/system.slice/Nginx.service"]);
        assert_eq!(found("{x,db-?}"), ["/web/db-1", "/web/db-1/x"]);
    }

    #[test]
    fn half_a_glob_is_no_pattern() {
        assert!(Filter::new("[a").is_err());
        assert!(Filter::new("{a").is_err());
    }
}
