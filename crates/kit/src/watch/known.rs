//! Which objects exist, as far as the watch has seen: the memory from which deletions are computed.

use std::collections::HashMap;

use crate::key::Key;

/// What a sighting means for an object's earlier life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sighting {
    /// Never seen, or seen with the same uid.
    Same,
    /// Another object had this name before: it is gone, even if nobody said so.
    Replaced,
}

/// Keys and uids of all objects, with the number of the list that last contained each.
#[derive(Debug, Default)]
pub(super) struct Known {
    objects: HashMap<Key, Entry>,
    list: u32,
}

#[derive(Debug)]
struct Entry {
    uid: Uid,
    list: u32,
}

/// A uid in 16 bytes, since there is one for every object; servers use UUIDs, but do not have to.
#[derive(Debug, PartialEq)]
enum Uid {
    None,
    Uuid([u8; 16]),
    Other(Box<str>),
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        match uuid(text) {
            Some(bytes) => Self::Uuid(bytes),
            None if text.is_empty() => Self::None,
            None => Self::Other(text.into()),
        }
    }
}

/// Only the one spelling that two equal uids share.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let hyphen = |index: usize| matches!(index, 8 | 13 | 18 | 23);
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let fits =
        text.bytes().enumerate().all(|(index, byte)| if hyphen(index) { byte == b'-' } else { digit(byte) });
    if text.len() != 36 || !fits {
        return None;
    }
    let digits: String = text.split('-').collect();
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

impl Known {
    /// A list begins. If an earlier one was cut off in the middle, its sightings count for nothing.
    pub(super) fn begin_list(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// The object exists, by a list or by an event.
    pub(super) fn seen(&mut self, key: &Key, uid: &str) -> Sighting {
        let list = self.list;
        if let Some(entry) = self.objects.get_mut(key) {
            entry.list = list;
            let uid = Uid::from(uid);
            if entry.uid == uid {
                return Sighting::Same;
            }
            entry.uid = uid;
            return Sighting::Replaced;
        }
        self.objects.insert(key.clone(), Entry { uid: uid.into(), list });
        Sighting::Same
    }

    /// The object exists but cannot be read: it keeps what is known of it, unless that was another object.
    ///
    /// Returns whether the known object is gone.
    pub(super) fn seen_unreadable(&mut self, key: &Key, uid: &str) -> bool {
        let list = self.list;
        match self.objects.get_mut(key) {
            Some(entry) if entry.uid == Uid::from(uid) => {
                entry.list = list;
                false
            }
            Some(_) => self.objects.remove(key).is_some(),
            None => false,
        }
    }

    /// The object is gone, or is of no interest any more. Returns whether it was known.
    ///
    /// A uid that is not the known one speaks of an earlier object of that name, whose end was told already.
    pub(super) fn gone(&mut self, key: &Key, uid: &str) -> bool {
        match self.objects.get(key) {
            Some(entry) if uid.is_empty() || entry.uid == Uid::None || entry.uid == Uid::from(uid) => {
                self.objects.remove(key);
                true
            }
            _ => false,
        }
    }

    /// The list is complete: forgets and returns all objects that were not in it.
    pub(super) fn end_list(&mut self) -> Vec<Key> {
        let list = self.list;
        let mut vanished: Vec<Key> =
            self.objects.extract_if(|_, entry| entry.list != list).map(|(key, _)| key).collect();
        // A cluster that was emptied should not keep the memory of its busiest day.
        if self.objects.capacity() > 64 && self.objects.len() < self.objects.capacity() / 4 {
            self.objects.shrink_to_fit();
        }
        vanished.sort_unstable();
        vanished
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }
}
