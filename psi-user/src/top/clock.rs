//! Times of day in UTC: the local time's rules are not at hand in every container, and logs are compared in UTC anyway.

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 24 * 3600 * SECOND_NS;

/// What can be typed, for the reader.
pub(super) const FORMS: &str = "HH:MM[:SS] UTC, -10m, +30s";

/// `03:04:05 UTC`.
pub(super) fn time_of_day(time_ns: u64) -> String {
    let seconds = time_ns / SECOND_NS;
    format!(
        "{:02}:{:02}:{:02} UTC",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// `2026-01-02`. From days to civil dates after Howard Hinnant's `civil_from_days`:
/// years begin in March, so that the day that leap years add is their last.
pub(super) fn date(time_ns: u64) -> String {
    let days = time_ns / DAY_NS + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

/// A time that was typed, ns since 1970: see [`FORMS`]. A time of day is the one within `first_ns` to `last_ns` that is
/// nearest to `now_ns`, else that of the same day; an offset is from `now_ns`.
pub(super) fn parse(text: &str, now_ns: u64, first_ns: u64, last_ns: u64) -> Result<u64, String> {
    let text = text.trim();
    let expected = || format!("expected {FORMS}");
    if let Some(offset) = text.strip_prefix(['+', '-']) {
        let digits = offset.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
        let seconds = match &offset[digits..] {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return Err(expected()),
        };
        let number: u64 = offset[..digits].parse().map_err(|_| expected())?;
        let offset = number.saturating_mul(seconds * SECOND_NS);
        return Ok(if text.starts_with('-') {
            now_ns.saturating_sub(offset)
        } else {
            now_ns.saturating_add(offset)
        });
    }
    let mut parts = text.split(':');
    let mut part = |below: u64| {
        let part = parts.next().filter(|part| part.len() <= 2)?;
        part.parse::<u64>().ok().filter(|number| *number < below)
    };
    let (hours, minutes) = part(24).zip(part(60)).ok_or_else(expected)?;
    let seconds = if text.matches(':').count() == 2 {
        part(60).ok_or_else(expected)?
    } else {
        0
    };
    if text.matches(':').count() > 2 {
        return Err(expected());
    }
    let today = now_ns / DAY_NS * DAY_NS + ((hours * 60 + minutes) * 60 + seconds) * SECOND_NS;
    let candidates = [today.saturating_sub(DAY_NS), today, today + DAY_NS];
    // Whole seconds are typed, so the first frame's second is within.
    let is_within = |time: &&u64| **time + SECOND_NS > first_ns && **time <= last_ns;
    let nearest = candidates
        .iter()
        .filter(is_within)
        .min_by_key(|time| time.abs_diff(now_ns));
    Ok(*nearest.unwrap_or(&today))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-02 03:04:05 UTC.
    const NOW: u64 = 1_767_323_045 * SECOND_NS;

    #[test]
    fn times_and_dates_are_utc() {
        assert_eq!(time_of_day(NOW + 999_999_999), "03:04:05 UTC");
        for (days, expected) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (NOW / DAY_NS, "2026-01-02"),
            (20_513, "2026-03-01"),
        ] {
            assert_eq!(date(days * DAY_NS + DAY_NS - 1), expected);
        }
    }

    #[test]
    fn a_time_of_day_is_the_nearest_in_the_recording() {
        let hour = 3600 * SECOND_NS;
        let midnight = NOW / DAY_NS * DAY_NS;
        let at = |text: &str| parse(text, NOW, NOW - 20 * hour, NOW + 2 * hour);
        assert_eq!(at("04:00"), Ok(midnight + 4 * hour));
        assert_eq!(at("02:00:01"), Ok(midnight + 2 * hour + SECOND_NS));
        assert_eq!(at(" 9:30 "), Ok(midnight + 9 * hour + hour / 2 - DAY_NS));
        assert_eq!(at("06:00"), Ok(midnight + 6 * hour));
        assert_eq!(at("-10m"), Ok(NOW - 600 * SECOND_NS));
        assert_eq!(at("+1h"), Ok(NOW + hour));
        for bad in [
            "", "x", "24:00", "1:60", "1:2:3:4", "1:2:", "-", "-5", "-5x", "+m", "1", "001:00", "12:3x",
        ] {
            assert!(at(bad).is_err(), "{bad:?} was taken");
        }
    }
}
