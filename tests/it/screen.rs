//! What a person sees: a terminal's screen, as far as the program uses one.

/// A screen of endless height.
pub struct Screen {
    columns: usize,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    pub fn new(columns: usize) -> Screen {
        Screen {
            columns,
            lines: vec![Vec::new()],
            row: 0,
            column: 0,
        }
    }

    /// What is on it, without blanks at the ends of lines.
    pub fn text(&self) -> String {
        let line = |line: &Vec<char>| line.iter().collect::<String>().trim_end().to_owned();
        let lines: Vec<String> = self.lines.iter().map(line).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Shows `text`. After every control sequence `seen` is called with the screen.
    pub fn show(&mut self, text: &str, mut seen: impl FnMut(&Screen)) {
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => self.go_down(1),
                '\u{1b}' => {
                    assert_eq!(rest.next(), Some('['), "a sequence nobody expects");
                    let mut number = String::new();
                    let end = loop {
                        match rest.next().unwrap() {
                            c if c.is_ascii_digit() => number.push(c),
                            c => break c,
                        }
                    };
                    seen(self);
                    self.obey(end, number.parse().unwrap_or(1));
                }
                c => self.put(c),
            }
        }
    }

    fn obey(&mut self, end: char, number: usize) {
        match end {
            'A' => self.row -= number,
            'B' => self.go_down(number),
            'K' => self.lines[self.row].clear(),
            other => panic!("a sequence nobody expects: {number}{other}"),
        }
        self.column = self.column.min(self.columns - 1);
    }

    fn go_down(&mut self, rows: usize) {
        self.row += rows;
        let least = self.lines.len().max(self.row + 1);
        self.lines.resize(least, Vec::new());
    }

    fn put(&mut self, c: char) {
        if self.column == self.columns {
            self.go_down(1);
            self.column = 0;
        }
        let line = &mut self.lines[self.row];
        let least = line.len().max(self.column + 1);
        line.resize(least, ' ');
        line[self.column] = c;
        self.column += 1;
    }
}
