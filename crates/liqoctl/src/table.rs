//! The one table printer: columns like kubectl's.

use std::fmt;

/// Rows under a heading, aligned by spaces.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

/// Spaces between two columns.
const GAP: usize = 3;

impl Table {
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self::of(&heading)
    }

    /// A table whose number of columns depends on what was asked for.
    pub(crate) fn of(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.push(Vec::from(cells));
    }

    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = width + GAP));
            writeln!(f, "{}", cells.collect::<String>().trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
