//! Names of cgroups, shortened so that people can read them.
//!
//! Whatever is left out can still be found by the filter, which looks at whole paths, and the switch for whole names
//! shows it.

use std::borrow::Cow;

use super::escape::escape;

/// Hexadecimal digits of a container's id that are shown, as `docker ps` and `crictl ps` do.
const CONTAINER: usize = 12;
/// The shortest run of hexadecimal digits that is taken for an id.
const ID: usize = 32;
/// The first group of a UUID.
const UUID_HEAD: usize = 8;

/// Prefixes of systemd scopes that hold one container, and the engine's name.
const ENGINES: [(&str, &str); 6] = [
    ("cri-containerd-", "containerd "),
    ("crio-conmon-", "crio-conmon "),
    ("crio-", "crio "),
    ("docker-", "docker "),
    ("libpod-conmon-", "podman-conmon "),
    ("libpod-", "podman "),
];

/// A path, or a part of one, as it may go to the terminal; each of its names shortened unless they are to be `whole`.
pub(super) fn label(path: &str, whole: bool) -> Cow<'_, str> {
    if whole || !is_long(path) {
        return escape(path);
    }
    let short: Vec<Cow<'_, str>> = path.split('/').map(short).collect();
    let short = short.join("/");
    Cow::Owned(escape(&short).into_owned())
}

/// Whether there may be something to shorten: most paths are left alone.
fn is_long(path: &str) -> bool {
    path.contains("kubepods") || path.contains('\\') || path.split('/').any(|name| name.len() >= ID)
}

/// One name.
fn short(name: &str) -> Cow<'_, str> {
    pod(name)
        .or_else(|| container(name))
        .map_or_else(|| ids(unescape(name)), Cow::Owned)
}

/// kubelet's names, with its systemd and its cgroupfs driver: `kubepods-burstable-pod<uid>.slice`, `pod<uid>`,
/// `kubepods-burstable.slice`.
fn pod(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".slice").unwrap_or(name);
    if let Some(class) = stem.strip_prefix("kubepods-")
        && matches!(class, "burstable" | "besteffort")
    {
        return Some(class.to_owned());
    }
    let uid = if let Some(rest) = stem.strip_prefix("kubepods-") {
        &rest[rest.find("pod")? + 3..]
    } else {
        stem.strip_prefix("pod")?
    };
    // Static pods have a hash instead of a UUID.
    let is_uid = is_uuid(uid) || uid.len() == ID && is_hex(uid);
    is_uid.then(|| format!("pod {}…", &uid[..UUID_HEAD]))
}

/// One container, by the names that the engines give.
fn container(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".scope").unwrap_or(name);
    let (engine, id) = ENGINES
        .iter()
        .find_map(|(prefix, engine)| Some((*engine, stem.strip_prefix(prefix)?)))
        .unwrap_or(("", stem));
    (id.len() == 64 && is_hex(id)).then(|| format!("{engine}{}…", &id[..CONTAINER]))
}

/// systemd's `\x2d` for a character that it keeps for itself; other bytes stay as they are.
fn unescape(name: &str) -> Cow<'_, str> {
    if !name.contains("\\x") {
        return Cow::Borrowed(name);
    }
    let mut parts = name.split("\\x");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = byte.filter(|byte| byte.is_ascii_graphic() && *byte != b'/' || *byte == b' ') {
            plain.push(char::from(byte));
            plain.push_str(&part[2..]);
        } else {
            plain.push_str("\\x");
            plain.push_str(part);
        }
    }
    Cow::Owned(plain)
}

/// Shortens ids within a name.
fn ids(name: Cow<'_, str>) -> Cow<'_, str> {
    if name.len() < ID || !name.is_ascii() {
        return name;
    }
    let mut text = String::with_capacity(name.len());
    let mut rest: &str = &name;
    while !rest.is_empty() {
        let hex = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
        if rest.get(..36).is_some_and(is_uuid) {
            text.push_str(&rest[..UUID_HEAD]);
            text.push('…');
            rest = &rest[36..];
        } else if hex >= ID {
            text.push_str(&rest[..CONTAINER]);
            text.push('…');
            rest = &rest[hex..];
        } else {
            // Whole runs, or an id could be seen in the middle of another word.
            let step = hex.max(1);
            text.push_str(&rest[..step]);
            rest = &rest[step..];
        }
    }
    Cow::Owned(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// With dashes, or underscores where systemd keeps dashes for itself.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => matches!(byte, b'-' | b'_'),
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn pods_and_containers_are_short() {
        let uid = "1a2b3c4d-0000-4000-8000-00000000000f";
        let systemd = uid.replace('-', "_");
        for (whole, short) in [
            (
                format!(
                    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{systemd}.slice/cri-containerd-{HASH}.scope"
                ),
                "kubepods.slice/burstable/pod 1a2b3c4d…/containerd 0123456789ab…",
            ),
            (format!("kubepods-pod{systemd}.slice"), "pod 1a2b3c4d…"),
            (
                format!("/kubepods/besteffort/pod{uid}/{HASH}"),
                "/kubepods/besteffort/pod 1a2b3c4d…/0123456789ab…",
            ),
            (format!("kubepods-burstable-pod{}.slice", &HASH[..32]), "pod 01234567…"),
            (
                format!("/machine.slice/libpod-{HASH}.scope"),
                "/machine.slice/podman 0123456789ab…",
            ),
            (format!("/docker/{HASH}"), "/docker/0123456789ab…"),
            (
                format!("system.slice/docker-{HASH}.scope"),
                "system.slice/docker 0123456789ab…",
            ),
        ] {
            assert_eq!(label(&whole, false), short);
            assert_eq!(label(&whole, true), whole);
        }
    }

    #[test]
    fn systemd_names_lose_their_escapes_and_ids() {
        for (whole, short) in [
            ("machine-qemu\\x2d1\\x2dvm.scope", "machine-qemu-1-vm.scope"),
            (
                "run-r0123456789abcdef0123456789abcdef.scope",
                "run-r0123456789ab….scope",
            ),
            (
                "dev-disk-by\\x2duuid-1a2b3c4d-0000-4000-8000-00000000000f.swap",
                "dev-disk-by-uuid-1a2b3c4d….swap",
            ),
            ("a\\x1bb", "a\\x1bb"),
            ("a\\x2fb", "a\\x2fb"),
            ("a\\xé", "a\\xé"),
            ("\\x", "\\x"),
        ] {
            assert_eq!(label(whole, false), short);
        }
    }

    #[test]
    fn other_names_stay() {
        for name in [
            "/",
            "",
            "system.slice/nginx.service",
            "podman",
            "pod-of-mine",
            "kubepods.slice",
            "crio-x.scope",
            "session-3.scope",
            "a-rather-long-name-of-a-service-of-someone.service",
            "kubepods-größe",
        ] {
            assert_eq!(label(name, false), name);
        }
    }
}
