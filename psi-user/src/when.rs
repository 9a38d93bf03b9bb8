//! Times as people type them: `2026-01-02T03:04:05Z`, `14:20`, `-10m`.

use std::{fmt, ops::RangeInclusive, str::FromStr, time::Duration};

use jiff::{
    SpanRelativeTo, Timestamp, ZonedDateTime,
    civil::{Date, DateTime, Time},
    fmt::friendly::SpanParser,
    tz::TimeZone,
};

const SPANS: SpanParser = SpanParser::new();
const SECOND_NS: u64 = 1_000_000_000;

/// A time in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A date and a time of day, with an offset from UTC, as RFC 3339 writes it.
    Instant(Timestamp),
    /// A date and a time of day, local.
    Local(DateTime),
    /// A date alone: where that day begins, local.
    Date(Date),
    /// A time of day, local.
    Clock(Time),
    /// So long before the end, or before what is shown.
    Before(Duration),
    /// So long after what is shown.
    After(Duration),
}

/// What a time looks like.
pub const EXPECTED: &str = "expected a time such as 2026-01-02T03:04:05Z, \"2026-01-02 03:04\", 2026-01-02, 14:20, 14:20:30, or -10m before the end";

/// The same where a frame is shown, short enough for one line with what was typed.
pub const EXPECTED_NEAR: &str = "expected 14:20, 14:20:30, 2026-01-02, 2026-01-02 14:20, -10m or +30s";

impl FromStr for When {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(ago) = text.strip_prefix('-') {
            return duration(ago).map(Self::Before).map_err(|_| EXPECTED);
        }
        let is_clock = text.len() <= "00:00:00".len() && text.as_bytes().get(2) == Some(&b':');
        if is_clock {
            return text.parse().map(Self::Clock).map_err(|_| EXPECTED);
        }
        if let Ok(instant) = text.parse() {
            return Ok(Self::Instant(instant));
        }
        // What is no date and no time by itself, such as 2026-01-02T14, is taken by neither.
        let read = if text.len() == "0000-00-00".len() {
            text.parse().map(Self::Date).ok()
        } else {
            text.parse().ok().filter(|_| text.contains(':')).map(Self::Local)
        };
        read.ok_or(EXPECTED)
    }
}

impl When {
    /// A time as it is typed where a frame is shown: as [`FromStr`], and `+30s`.
    ///
    /// # Errors
    /// When it is no time: [`EXPECTED_NEAR`].
    pub fn parse_near(text: &str) -> Result<Self, &'static str> {
        match text.strip_prefix('+') {
            Some(later) => duration(later).map(Self::After).map_err(|_| EXPECTED_NEAR),
            None => text.parse().map_err(|_| EXPECTED_NEAR),
        }
    }

    /// Which instant it is, ns since 1970, for someone who looks at `now_ns` of a recording that covers `span_ns`:
    /// durations count from `now_ns`. A time of day is the one in the recording that is nearest to it; if there is
    /// none, that of the same day.
    ///
    /// None if there is no such instant.
    pub fn resolve_near(self, now_ns: u64, span_ns: RangeInclusive<u64>, zone: &TimeZone) -> Option<u64> {
        let Self::Clock(time) = self else {
            return self.resolve(now_ns, zone);
        };
        let days = on_near_days(time, now_ns, zone)?;
        // Whole seconds are typed, so the first frame's second is within.
        let is_within = |at: &u64| at.saturating_add(SECOND_NS) > *span_ns.start() && at <= span_ns.end();
        let found = days.into_iter().flatten().filter(is_within);
        found.min_by_key(|at| at.abs_diff(now_ns)).or(days[1])
    }

    /// As [`Self::resolve_near`], but a time of day is the first such from `after_ns` on: 23:50 and 00:10 are 20 minutes.
    pub fn resolve_after(self, now_ns: u64, after_ns: u64, zone: &TimeZone) -> Option<u64> {
        let Self::Clock(time) = self else {
            return self.resolve(now_ns, zone);
        };
        let days = on_near_days(time, after_ns, zone)?;
        days.into_iter().flatten().find(|&at| at >= after_ns)
    }

    /// Which instant it is, ns since 1970; durations count from `now_ns`. None for a time of day, which is of no one day.
    fn resolve(self, now_ns: u64, zone: &TimeZone) -> Option<u64> {
        match self {
            Self::Instant(instant) => nanoseconds(instant),
            Self::Local(time) => nanoseconds(zone.to_timestamp(time).ok()?),
            Self::Date(date) => nanoseconds(zone.to_timestamp(date.to_datetime(Time::midnight())).ok()?),
            Self::Before(ago) => now_ns.checked_sub(u64::try_from(ago.as_nanos()).ok()?),
            Self::After(later) => now_ns.checked_add(u64::try_from(later.as_nanos()).ok()?),
            Self::Clock(_) => None,
        }
    }
}

/// Up to when: all of the second, or of the day, that was typed.
///
/// Seconds that are left out are 0, so `14:20` ends with that minute's first second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    when: When,
    /// How much of what begins then is included, too, ns; for a day that depends on the zone.
    rest_ns: u64,
}

impl FromStr for End {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let when = text.parse()?;
        let is_whole = !text.contains(['.', ',']);
        let rest_ns = match when {
            When::Instant(_) | When::Local(_) | When::Clock(_) if is_whole => SECOND_NS - 1,
            _ => 0,
        };
        Ok(Self { when, rest_ns })
    }
}

impl End {
    /// The last instant that is included, in a recording that covers `span_ns`. A time of day is the first such from
    /// `after_ns` on; without that as in [`When::resolve_near`], from the recording's end.
    pub fn resolve(self, span_ns: RangeInclusive<u64>, after_ns: Option<u64>, zone: &TimeZone) -> Option<u64> {
        let Self { when, rest_ns } = self;
        let end_ns = *span_ns.end();
        if let When::Date(date) = when {
            let next = When::Date(date.tomorrow().ok()?);
            return next.resolve(end_ns, zone)?.checked_sub(1);
        }
        let at = match after_ns {
            // The second in which that time lies has begun before it.
            Some(after_ns) => when.resolve_after(end_ns, after_ns.saturating_sub(rest_ns), zone),
            None => when.resolve_near(end_ns, span_ns, zone),
        };
        at?.checked_add(rest_ns)
    }
}

/// A time of day on the day before that of `near_ns`, on that day, and on the next: days differ in length.
fn on_near_days(time: Time, near_ns: u64, zone: &TimeZone) -> Option<[Option<u64>; 3]> {
    let near = Timestamp::from_nanosecond(near_ns.into()).ok()?;
    let day = zone.to_datetime(near).date();
    let days = [day.yesterday().ok()?, day, day.tomorrow().ok()?];
    Some(days.map(|day| nanoseconds(zone.to_timestamp(day.to_datetime(time)).ok()?)))
}

fn nanoseconds(instant: Timestamp) -> Option<u64> {
    u64::try_from(instant.as_nanosecond()).ok()
}

/// An instant, ns since 1970, for people: local, with its offset from UTC.
pub fn local(time_ns: u64, zone: &TimeZone) -> impl fmt::Display + use<> {
    zoned(time_ns, zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// Its time of day alone, with the zone's short name.
pub fn time_of_day(time_ns: u64, zone: &TimeZone) -> impl fmt::Display + use<> {
    zoned(time_ns, zone).strftime("%H:%M:%S %Z").to_string()
}

fn zoned(time_ns: u64, zone: &TimeZone) -> ZonedDateTime {
    let instant = Timestamp::from_nanosecond(time_ns.into()).unwrap_or_default();
    ZonedDateTime::new(instant, zone.clone())
}

/// A duration: numbers with `d`, `h`, `m`, `s` or `ms`, or these units' names: `1h30m`, `2 days`. A day is 24 h.
///
/// # Errors
/// When it is another, or 0, or more than a year.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    const EXPECTED: &str = "expected a duration such as 500ms, 1s, 2m, 1h30m or 7d";
    const LONGEST: Duration = Duration::from_hours(366 * 24);
    // Neither a clock's 01:30:00 nor a sign.
    if !text.starts_with(|c: char| c.is_ascii_digit()) || text.contains(':') {
        return Err(EXPECTED);
    }
    let span = SPANS.parse_span(text).map_err(|_| EXPECTED)?;
    // Months and years differ in length: this refuses them. `ago` makes it negative.
    let duration = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| EXPECTED)?;
    let duration = Duration::try_from(duration).map_err(|_| EXPECTED)?;
    if duration.is_zero() {
        return Err("a duration must be longer than 0");
    }
    if duration > LONGEST {
        return Err("a duration must be at most a year");
    }
    Ok(duration)
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
        let resolve = |text: &str, after: Option<u64>| {
            let when: When = text.parse().unwrap_or_else(|_| panic!("{text}"));
            match after {
                Some(after) => when.resolve_after(end, after, &zone),
                None => when.resolve_near(end, 0..=end, &zone),
            }
        };
        for (text, expected) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05.5Z"),
            ("2026-01-02T03:04+01:00", "2026-01-02T02:04:00Z"),
            ("2026-01-02 03:04", "2026-01-02T01:04:00Z"),
            ("2026-01-02T03:04:05", "2026-01-02T01:04:05Z"),
            ("2026-01-02", "2026-01-01T22:00:00Z"),
            ("23:50", "2026-01-02T21:50:00Z"),
            ("00:10", "2026-01-02T22:10:00Z"),
            ("00:30:00", "2026-01-02T22:30:00Z"),
            ("00:30:01", "2026-01-01T22:30:01Z"),
            ("-10m", "2026-01-02T22:20:00Z"),
            ("-1.5h", "2026-01-02T21:00:00Z"),
            ("-1h30m", "2026-01-02T21:00:00Z"),
            ("-1d", "2026-01-01T22:30:00Z"),
        ] {
            assert_eq!(resolve(text, None), Some(at(expected)), "{text}");
        }
        // The end comes after the begin.
        let begin = resolve("23:50", None);
        assert_eq!(resolve("00:10", begin), Some(at("2026-01-02T22:10:00Z")));
        assert_eq!(resolve("01:00", begin), Some(at("2026-01-02T23:00:00Z")));
        assert_eq!(local(end, &zone).to_string(), "2026-01-03T00:30:00+02:00");
        assert_eq!(time_of_day(end, &zone).to_string(), "00:30:00 +02");
        assert_eq!(time_of_day(end, &TimeZone::UTC).to_string(), "22:30:00 UTC");
        // Where nobody knows the zone.
        assert_eq!(time_of_day(end, &TimeZone::unknown()).to_string(), "22:30:00 UTC");
    }

    #[test]
    fn an_end_includes_all_of_what_was_typed() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let end = at("2026-01-03T00:30:00+02:00");
        let start = at("2026-01-02T14:00:00+02:00");
        let begin = Some(at("2026-01-02T14:20:30.7+02:00"));
        for (text, expected) in [
            ("2026-01-02", "2026-01-02T23:59:59.999999999+02:00"),
            ("14:20", "2026-01-03T14:20:00.999999999+02:00"),
            ("14:21", "2026-01-02T14:21:00.999999999+02:00"),
            // The second of the begin.
            ("14:20:30", "2026-01-02T14:20:30.999999999+02:00"),
            ("14:20:29", "2026-01-03T14:20:29.999999999+02:00"),
            ("2026-01-02 14:20:31.5", "2026-01-02T14:20:31.5+02:00"),
            ("2026-01-02 14:22", "2026-01-02T14:22:00.999999999+02:00"),
            ("2026-01-02T12:22:01Z", "2026-01-02T14:22:01.999999999+02:00"),
            ("2026-01-02T12:22:01.000Z", "2026-01-02T14:22:01+02:00"),
            ("-10m", "2026-01-03T00:20:00+02:00"),
        ] {
            let found = text
                .parse::<End>()
                .unwrap_or_else(|_| panic!("{text}"))
                .resolve(start..=end, begin, &zone);
            assert_eq!(found, Some(at(expected)), "{text}");
        }
        assert!("soon".parse::<End>().is_err());
        // Without a begin: the one in the recording, or else of its last day, before it or after.
        for (text, expected) in [
            ("14:20", "2026-01-02T14:20:00.999999999+02:00"),
            ("00:31", "2026-01-03T00:31:00.999999999+02:00"),
            ("13:00", "2026-01-03T13:00:00.999999999+02:00"),
            ("-10m", "2026-01-03T00:20:00+02:00"),
        ] {
            let found = text.parse::<End>().expect("a time").resolve(start..=end, None, &zone);
            assert_eq!(found, Some(at(expected)), "{text}");
        }
        // A day of 23 hours, and one that has no midnight.
        for (zone, day, expected) in [
            ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29", "2026-03-29T22:00:00Z"),
            ("XXX4YYY,M9.1.0/0,M4.1.0/0", "2026-09-05", "2026-09-06T04:00:00Z"),
        ] {
            let zone = TimeZone::posix(zone).expect("a zone");
            let found = day.parse::<End>().expect("a date").resolve(start..=end, None, &zone);
            assert_eq!(found, Some(at(expected) - 1), "{day}");
        }
    }

    #[test]
    fn a_time_of_day_is_the_nearest_in_the_recording() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let now = at("2026-01-02T03:04:05+02:00");
        let span = at("2026-01-01T07:04:05+02:00")..=at("2026-01-02T05:04:05+02:00");
        for (text, expected) in [
            ("04:00", "2026-01-02T04:00:00+02:00"),
            ("02:00:01", "2026-01-02T02:00:01+02:00"),
            ("09:30", "2026-01-01T09:30:00+02:00"),
            // In no part of it.
            ("06:00", "2026-01-02T06:00:00+02:00"),
            ("2026-01-01 09:30", "2026-01-01T09:30:00+02:00"),
            ("2026-01-01T09:30:00Z", "2026-01-01T09:30:00Z"),
            ("2026-01-01", "2026-01-01T00:00:00+02:00"),
            ("-10m", "2026-01-02T02:54:05+02:00"),
            ("+1.5h", "2026-01-02T04:34:05+02:00"),
            ("+1h30m", "2026-01-02T04:34:05+02:00"),
            ("-1d", "2026-01-01T03:04:05+02:00"),
        ] {
            let when = When::parse_near(text).unwrap_or_else(|_| panic!("{text}"));
            assert_eq!(
                when.resolve_near(now, span.clone(), &zone),
                Some(at(expected)),
                "{text}"
            );
        }
        for bad in [
            "",
            "+",
            "+5",
            "+m",
            "-",
            "24:00",
            "1:60",
            "1:2:3:4",
            "12:3x",
            "2026-13-01",
        ] {
            assert_eq!(When::parse_near(bad), Err(EXPECTED_NEAR), "{bad:?}");
        }
        // `dump` has no frame that is shown.
        assert!("+30s".parse::<When>().is_err());
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
            "2026-02-30",
            "20260102",
            "2026-01-02T14",
            "2026-01-02Z",
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
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("1d"), Ok(Duration::from_hours(24)));
        assert_eq!(duration("2d12h"), Ok(Duration::from_hours(60)));
        assert_eq!(duration("2 days, 12 hours"), Ok(Duration::from_hours(60)));
        assert_eq!(duration("1w"), Ok(Duration::from_hours(168)));
        assert_eq!(duration("366d"), Ok(Duration::from_hours(366 * 24)));
        for bad in [
            "",
            "5",
            "s",
            "1x",
            "-1s",
            "+1s",
            "0s",
            "0.1ns",
            "1..2s",
            " 1s",
            "1s ago",
            "1h 5",
            "30m1h",
            "1M",
            "1mo",
            "1y",
            "01:30:00",
            "1d 01:30:00",
            "PT5M",
            "366d1s",
            "99999999h",
            "99999999999999999999s",
            "é",
        ] {
            assert!(duration(bad).is_err(), "{bad:?} was taken");
        }
    }
}
