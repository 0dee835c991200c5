//! Tables as kubectl prints them: upper-case headers, two blanks between columns, the last column
//! not padded, widths as a terminal shows them.

use std::io;

use super::{
    style::{Paint, Style},
    text::{Line, width},
};
use crate::out::Out;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its header.
    pub name: &'static str,
    /// Only with `-o wide`.
    pub wide: bool,
}

/// Rows under headers.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Line>>,
}

const GAP: usize = 2;

impl Table {
    /// A table of these columns; those that are `wide` only where that was asked for.
    pub fn new(columns: &[Column], wide: bool) -> Self {
        let columns = columns.iter().copied().filter(|column| wide || !column.wide).collect();
        Self { columns, rows: Vec::new() }
    }

    /// A table of these headers.
    pub fn of(names: &[&'static str]) -> Self {
        let columns = names.iter().map(|name| Column { name, wide: false }).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Appends a row; cells beyond the columns are dropped, an empty cell shows as `-`.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Line>) {
        let mut cells: Vec<Line> =
            cells.into_iter().take(self.columns.len()).map(Line::cell).collect();
        for cell in &mut cells {
            if cell.is_empty() {
                *cell = Line::from((Paint::Dim, "-"));
            }
        }
        self.rows.push(cells);
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The widths of the columns, by headers and rows.
    pub fn widths(&self, style: Style) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| width(column.name)).collect();
        for row in &self.rows {
            for (known, cell) in widths.iter_mut().zip(row) {
                *known = (*known).max(width(&cell.bare(style)));
            }
        }
        widths
    }

    /// All lines at these widths, with headers or without.
    pub fn lines(&self, style: Style, widths: &[usize], headers: bool) -> Vec<Line> {
        let header = self.columns.iter().map(|column| Line::from(column.name)).collect::<Vec<_>>();
        let rows = headers.then_some(&header).into_iter().chain(&self.rows);
        rows.map(|row| aligned(row, style, widths)).collect()
    }

    /// Prints it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn print(&self, out: &mut Out, headers: bool) -> io::Result<()> {
        let style = out.style;
        for line in self.lines(style, &self.widths(style), headers) {
            out.line(line)?;
        }
        Ok(())
    }
}

fn aligned(cells: &[Line], style: Style, widths: &[usize]) -> Line {
    let mut line = Line::new();
    let last = cells.len().saturating_sub(1);
    for (index, cell) in cells.iter().enumerate() {
        line = line.and(cell.clone());
        if index < last {
            let wanted = widths.get(index).copied().unwrap_or_default();
            let missing = wanted.saturating_sub(width(&cell.bare(style)));
            line = line.plain(" ".repeat(missing + GAP));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::Icon;

    fn text(table: &Table, style: Style) -> String {
        let lines = table.lines(style, &table.widths(style), true);
        lines.iter().flat_map(|line| [line.render(style), "\n".to_owned()]).collect()
    }

    #[test]
    fn columns_are_as_wide_as_a_terminal_shows_them() {
        let mut table = Table::of(&["NAME", "STATUS", "INFO"]);
        table.row(["日本".into(), Line::new().icon(Icon::Good, "Ready"), Line::new()]);
        table.row(["a".into(), "b".into(), "more\nlines".into()]);
        assert_eq!(
            text(&table, Style::default()),
            "NAME  STATUS   INFO\n日本  ✔ Ready  -\na     b        more…\n"
        );
        assert_eq!(
            text(&table, Style { colour: false, ascii: true }).lines().nth(2).unwrap(),
            "a                 b        more..."
        );
    }

    #[test]
    fn colour_takes_no_room() {
        let mut table = Table::of(&["A", "B"]);
        table.row([(Paint::Bad, "xx").into(), "y".into()]);
        assert_eq!(
            text(&table, Style { colour: true, ascii: false }),
            "A   B\n\u{1b}[31mxx\u{1b}[0m  y\n"
        );
    }

    #[test]
    fn wide_columns_come_only_when_asked_for() {
        let columns = [Column { name: "A", wide: false }, Column { name: "B", wide: true }];
        for (wide, expected) in [(false, "A\n1\n"), (true, "A  B\n1  2\n")] {
            let mut table = Table::new(&columns, wide);
            table.row(["1".into(), "2".into()]);
            assert_eq!(text(&table, Style::default()), expected);
        }
    }
}
