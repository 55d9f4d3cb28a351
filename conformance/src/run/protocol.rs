//! What a run and the processes that it starts say to each other: names of cases one way, results the other, one line each.

use serde::{Deserialize, Serialize};

use crate::suites::Report;

/// What lines of results begin with; drivers may print too.
const MARK: &str = "@halite-conformance ";

/// A line of a process that runs cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The device is open; cases may be sent.
    Ready,
    /// Nothing can be run, and why.
    Unable(String),
    /// A case has ended.
    Ended(Report),
}

impl Said {
    /// As a line, with its end.
    pub fn line(&self) -> String {
        let text = serde_json::to_string(self).expect("strings and numbers can be written as JSON");
        format!("{MARK}{text}\n")
    }

    /// From a line; nothing for what is none of ours.
    pub fn parse(line: &str) -> Option<Said> {
        serde_json::from_str(line.strip_prefix(MARK)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use halite_testing::Wrong;

    use super::*;
    use crate::suites::Verdict;

    #[test]
    fn every_verdict_survives_the_way() {
        let text = "two\nlines and \"quotes\"".to_owned();
        for verdict in [
            Verdict::Pass,
            Verdict::Skip(text.clone()),
            Verdict::Fail(text.clone()),
            Verdict::Wrong(Wrong::words(text.clone())),
            Verdict::Timeout(text.clone()),
            Verdict::Crash(text),
        ] {
            let report = Report { case: "a.b.c".to_owned(), verdict, time: Duration::from_micros(1500) };
            let said = Said::Ended(report);
            let line = said.line();
            assert_eq!(line.matches('\n').count(), 1);
            assert_eq!(Said::parse(line.trim_end()), Some(said));
        }
        assert_eq!(Said::parse("MESA: warning: something"), None);
    }
}
