//! Times as people type them: `2026-01-02T03:04:05Z`, `14:20`, `-10m`.

use std::{fmt, str::FromStr, time::Duration};

use jiff::{
    Timestamp, ZonedDateTime,
    civil::{DateTime, Time},
    tz::TimeZone,
};

/// A time in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A date and a time of day, with an offset from UTC, as RFC 3339 writes it.
    Instant(Timestamp),
    /// A date and a time of day, local.
    Local(DateTime),
    /// A time of day, local.
    Clock(Time),
    /// So long before the end.
    BeforeEnd(Duration),
}

/// What a time looks like.
pub const EXPECTED: &str =
    "expected a time such as 2026-01-02T03:04:05Z, \"2026-01-02 03:04\", 14:20, 14:20:30, or -10m before the end";

impl FromStr for When {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(ago) = text.strip_prefix('-') {
            return duration(ago).map(Self::BeforeEnd).map_err(|_| EXPECTED);
        }
        let is_clock = text.len() <= "00:00:00".len() && text.as_bytes().get(2) == Some(&b':');
        if is_clock {
            return text.parse().map(Self::Clock).map_err(|_| EXPECTED);
        }
        if let Ok(instant) = text.parse() {
            return Ok(Self::Instant(instant));
        }
        // A date alone is no time.
        let has_time = text.contains(':');
        text.parse().ok().filter(|_| has_time).map(Self::Local).ok_or(EXPECTED)
    }
}

impl When {
    /// Which instant it is, ns since 1970; `end_ns` is the recording's end.
    ///
    /// A time of day is the last such before the end; or, with `after_ns`, the first from then on: 23:50 and 00:10 are
    /// 20 minutes.
    ///
    /// None if there is no such instant.
    pub fn resolve(self, end_ns: u64, after_ns: Option<u64>, zone: &TimeZone) -> Option<u64> {
        let nanoseconds = |instant: Timestamp| u64::try_from(instant.as_nanosecond()).ok();
        match self {
            Self::Instant(instant) => nanoseconds(instant),
            Self::Local(time) => nanoseconds(zone.to_timestamp(time).ok()?),
            Self::BeforeEnd(ago) => end_ns.checked_sub(u64::try_from(ago.as_nanos()).ok()?),
            Self::Clock(time) => {
                let near = Timestamp::from_nanosecond(after_ns.unwrap_or(end_ns).into()).ok()?;
                let day = zone.to_datetime(near).date();
                // Days differ in length; the day before, this one and the next are enough.
                let mut found = [day.yesterday().ok()?, day, day.tomorrow().ok()?]
                    .into_iter()
                    .filter_map(|day| nanoseconds(zone.to_timestamp(day.to_datetime(time)).ok()?));
                match after_ns {
                    Some(after_ns) => found.find(|&at| at >= after_ns),
                    None => found.rfind(|&at| at <= end_ns),
                }
            }
        }
    }
}

/// An instant, ns since 1970, for people: local, with its offset from UTC.
pub fn local(time_ns: u64, zone: &TimeZone) -> impl fmt::Display + use<> {
    let instant = Timestamp::from_nanosecond(time_ns.into()).unwrap_or_default();
    ZonedDateTime::new(instant, zone.clone())
        .strftime("%Y-%m-%dT%H:%M:%S%:z")
        .to_string()
}

/// A duration: a number (fractions allowed) and `ms`, `s`, `m` or `h`.
///
/// # Errors
/// When it is another, or 0, or more than a year.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    const EXPECTED: &str = "expected a duration such as 500ms, 1s or 2m";
    const LONGEST: f64 = 366.0 * 24.0 * 3600.0;
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(EXPECTED)?;
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(EXPECTED),
    };
    let seconds = number.parse::<f64>().map_err(|_| EXPECTED)? * seconds;
    if seconds <= 0.0 {
        return Err("a duration must be longer than 0");
    }
    if seconds > LONGEST {
        return Err("a duration must be at most a year");
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> u64 {
        let instant: Timestamp = text.parse().expect("RFC 3339");
        u64::try_from(instant.as_nanosecond()).expect("past 1970")
    }

    #[test]
    fn times_are_read() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let end = at("2026-01-03T00:30:00+02:00");
        let resolve = |text: &str, after| {
            text.parse::<When>()
                .unwrap_or_else(|_| panic!("{text}"))
                .resolve(end, after, &zone)
        };
        for (text, expected) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05.5Z"),
            ("2026-01-02T03:04+01:00", "2026-01-02T02:04:00Z"),
            ("2026-01-02 03:04", "2026-01-02T01:04:00Z"),
            ("2026-01-02T03:04:05", "2026-01-02T01:04:05Z"),
            ("23:50", "2026-01-02T21:50:00Z"),
            ("00:10", "2026-01-02T22:10:00Z"),
            ("00:30:00", "2026-01-02T22:30:00Z"),
            ("00:30:01", "2026-01-01T22:30:01Z"),
            ("-10m", "2026-01-02T22:20:00Z"),
            ("-1.5h", "2026-01-02T21:00:00Z"),
        ] {
            assert_eq!(resolve(text, None), Some(at(expected)), "{text}");
        }
        // The end comes after the begin.
        let begin = resolve("23:50", None);
        assert_eq!(resolve("00:10", begin), Some(at("2026-01-02T22:10:00Z")));
        assert_eq!(resolve("01:00", begin), Some(at("2026-01-02T23:00:00Z")));
        assert_eq!(local(end, &zone).to_string(), "2026-01-03T00:30:00+02:00");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "-",
            "-10",
            "now",
            "25:00",
            "1:2",
            "14:20:61",
            "2026-01-02",
            "10m",
            "14:20 ",
            "-\u{e9}",
        ] {
            assert!(text.parse::<When>().is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        for bad in ["", "5", "s", "1x", "-1s", "0s", "1..2s", "1s ", "99999999h", "é"] {
            assert!(duration(bad).is_err(), "{bad:?} was taken");
        }
    }
}
