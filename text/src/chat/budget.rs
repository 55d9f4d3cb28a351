//! What one rendering may take: steps and memory, counted while it goes on, so that a template cannot ask for more than there is.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

/// What a value takes besides its own bytes: counters, lengths, what an allocator adds.
pub(super) const OVERHEAD: usize = 64;

/// Bytes that are copied or looked at in the time of a step.
const BYTES_OF_A_STEP: usize = 32;

/// Why a template gives no text.
#[derive(Debug)]
pub(super) struct Fault {
    /// The line of the template; 0 where nobody said it yet.
    pub line: u32,
    /// Whether it is what the template takes, and not what it does.
    pub limit: bool,
    pub text: String,
}

impl Fault {
    /// The template does what cannot be done.
    pub fn new(text: impl Into<String>) -> Fault {
        Fault { line: 0, limit: false, text: text.into() }
    }

    /// It takes more than it may.
    pub fn limit(text: impl Into<String>) -> Fault {
        Fault { line: 0, limit: true, text: text.into() }
    }

    /// The same, where a line is known and was not before.
    pub fn at(mut self, line: u32) -> Fault {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}

/// What most calls give.
pub(super) type Done<T> = Result<T, Fault>;

/// Is told the steps that were made and the most that may be; says whether the work is to end.
pub(super) type Stop = Box<dyn Fn(u64, u64) -> bool + Send + Sync>;

/// Steps between two looks at [`Stop`]: some milliseconds.
const BETWEEN_LOOKS: u64 = 1 << 16;

/// What one rendering may take, and what it took. One thread uses it; values that hold on to it may be read by others.
pub(super) struct Budget {
    steps: AtomicU64,
    most_steps: u64,
    stop: Option<Stop>,
    held: AtomicUsize,
    most_held: usize,
}

impl Budget {
    pub fn new(most_steps: u64, most_held: usize, stop: Option<Stop>) -> Arc<Budget> {
        Arc::new(Budget { steps: AtomicU64::new(0), most_steps, stop, held: AtomicUsize::new(0), most_held })
    }

    /// Counts steps.
    pub fn steps(&self, steps: usize) -> Done<()> {
        let before = self.steps.load(Relaxed);
        let sum = before.saturating_add(steps as u64);
        self.steps.store(sum, Relaxed);
        // With the first step, and then as often as that many are made.
        let looks = (before == 0 && sum > 0) || sum / BETWEEN_LOOKS != before / BETWEEN_LOOKS;
        if looks && self.stop.as_ref().is_some_and(|stop| stop(sum.min(self.most_steps), self.most_steps)) {
            return Err(Fault::limit("was stopped"));
        }
        if sum <= self.most_steps {
            return Ok(());
        }
        let text =
            format!("takes more than {} steps, which are the most for these messages", self.most_steps);
        Err(Fault::limit(text))
    }

    /// Counts the steps of looking at bytes.
    pub fn bytes(&self, bytes: usize) -> Done<()> {
        self.steps(bytes / BYTES_OF_A_STEP)
    }

    /// Counts the steps of looking at characters one by one.
    pub fn characters(&self, text: &str) -> Done<()> {
        self.steps(text.len() / 4)
    }

    fn take(&self, bytes: usize) -> Done<()> {
        let held = self.held.load(Relaxed).saturating_add(bytes);
        if held > self.most_held {
            let text = format!(
                "makes texts and lists of more than {} bytes, which are the most for these messages",
                self.most_held
            );
            return Err(Fault::limit(text));
        }
        self.held.store(held, Relaxed);
        Ok(())
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("steps", &self.steps).field("held", &self.held).finish_non_exhaustive()
    }
}

/// Memory that is counted as held for as long as this lives.
#[derive(Debug)]
pub(super) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    pub fn new(budget: &Arc<Budget>, bytes: usize) -> Done<Charge> {
        budget.take(bytes)?;
        Ok(Charge { budget: budget.clone(), bytes })
    }

    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    pub fn add(&mut self, bytes: usize) -> Done<()> {
        self.budget.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    fn remove(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.held.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.remove(self.bytes);
    }
}

/// A text that a template holds.
#[derive(Debug)]
pub(super) struct Text {
    text: String,
    /// None for the texts of the template itself.
    _charge: Option<Charge>,
}

impl Text {
    /// A text that is there as long as the template.
    pub fn literal(text: String) -> Text {
        Text { text, _charge: None }
    }

    pub fn new(budget: &Arc<Budget>, text: &str) -> Done<Arc<Text>> {
        let mut made = Builder::new(budget)?;
        made.push(text)?;
        Ok(made.text())
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// A text under way, which is refused more room than there is.
#[derive(Debug)]
pub(super) struct Builder {
    text: String,
    charge: Charge,
}

impl Builder {
    pub fn new(budget: &Arc<Budget>) -> Done<Builder> {
        Ok(Builder { text: String::new(), charge: Charge::new(budget, OVERHEAD)? })
    }

    pub fn push(&mut self, text: &str) -> Done<()> {
        self.charge.budget.bytes(text.len())?;
        self.make_room(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    fn make_room(&mut self, bytes: usize) -> Done<()> {
        let needed = self.text.len().saturating_add(bytes);
        let capacity = self.text.capacity();
        if needed > capacity {
            // Twice as much, as pieces come one by one; what is needed, where there is not as much.
            let wanted = if self.text.is_empty() { needed } else { needed.max(2 * capacity) };
            let taken = match self.charge.add(wanted - capacity) {
                Ok(()) => wanted,
                Err(_) => {
                    self.charge.add(needed - capacity)?;
                    needed
                }
            };
            self.text.reserve_exact(taken - self.text.len());
        }
        Ok(())
    }

    pub fn push_char(&mut self, character: char) -> Done<()> {
        self.push(character.encode_utf8(&mut [0; 4]))
    }

    /// The same text so many times.
    pub fn repeat(&mut self, text: &str, times: usize) -> Done<()> {
        if text.is_empty() {
            return Ok(());
        }
        let bytes = text.len().saturating_mul(times);
        self.make_room(bytes)?;
        self.charge.budget.bytes(bytes)?;
        self.charge.budget.steps(times / 8)?;
        (0..times).for_each(|_| self.text.push_str(text));
        Ok(())
    }

    pub fn budget(&self) -> &Arc<Budget> {
        &self.charge.budget
    }

    pub fn text(self) -> Arc<Text> {
        Arc::new(Text { text: self.text, _charge: Some(self.charge) })
    }

    /// The text without its account, for whoever asked for the rendering.
    pub fn end(self) -> String {
        self.text
    }
}
