//! What a generation took: tokens, time, memory.

use std::{io::Write, time::Duration};

use halite::{CacheType, Drafted, Generator, Stop};
use serde_json::json;

use crate::{console::Result, logger};

/// Text and numbers of one generation.
pub(super) struct Report {
    device: String,
    context: usize,
    prompt_tokens: usize,
    /// From the beginning to where the model was ready.
    load: Duration,
    pub prompt: Duration,
    pub generation: Duration,
    pub tokens: Vec<u32>,
    pub text: String,
    /// What the model thought before, where that is told apart.
    pub thoughts: Option<String>,
    pub stop: Option<Stop>,
    /// Whether a text came that ends it (`--stop`).
    pub is_stopped: bool,
    /// Bytes of the caches.
    pub memory: usize,
    /// What a second model wrote ahead, if one did.
    pub drafted: Option<Drafted>,
    generator: Generator,
}

/// How many of something in a second; 0 where nothing took time.
fn rate(count: usize, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

impl Report {
    pub fn new(generator: &Generator, load: Duration, prompt_tokens: usize) -> Report {
        let device = generator.session().device().map(halite::Device::uri).unwrap_or_default();
        Report {
            device,
            context: generator.context(),
            prompt_tokens,
            load,
            prompt: Duration::ZERO,
            generation: Duration::ZERO,
            tokens: Vec::new(),
            text: String::new(),
            thoughts: None,
            stop: None,
            is_stopped: false,
            memory: 0,
            drafted: None,
            generator: generator.clone(),
        }
    }

    /// Bytes that are in use on the device, and at most were.
    fn device_memory(&self) -> (u64, u64) {
        self.generator.session().device().map_or((0, 0), |device| {
            let memory = device.memory();
            (memory.used, memory.peak_used)
        })
    }

    pub fn print_json(&self, out: &mut dyn Write) -> Result<()> {
        let (used, peak) = self.device_memory();
        let stop = self.stop.map(|stop| match self.is_stopped {
            true => "text".to_owned(),
            false => format!("{stop:?}").to_lowercase(),
        });
        let report = json!({
            "text": self.text,
            "reasoning_content": self.thoughts,
            "tokens": self.tokens,
            "stop": stop,
            "device": self.device,
            "context": self.context,
            "load_seconds": self.load.as_secs_f64(),
            "prompt": {
                "tokens": self.prompt_tokens,
                "seconds": self.prompt.as_secs_f64(),
                "tokens_per_second": rate(self.prompt_tokens, self.prompt),
            },
            "generation": {
                "tokens": self.tokens.len(),
                "seconds": self.generation.as_secs_f64(),
                "tokens_per_second": rate(self.tokens.len(), self.generation),
            },
            "draft": self.drafted.map(|own| json!({"tokens": own.tokens, "taken": own.taken})),
            "cache_types": self.generator.cache_types().map(CacheType::name),
            "memory": {"caches": self.memory, "device_used": used, "device_peak": peak},
        });
        Ok(writeln!(out, "{report:#}")?)
    }

    /// One line on standard error, for those who want more than the text.
    pub fn print_text(&self) {
        if logger::is_quiet() {
            return;
        }
        let (used, peak) = self.device_memory();
        let [keys, values] = self.generator.cache_types();
        let draft = self.drafted.map(|own| format!("; {} of {} drafted tokens taken", own.taken, own.tokens));
        let draft = draft.unwrap_or_default();
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        eprintln!(
            "ready in {:.2} s; prompt: {} tokens, {:.1} tokens/s; generation: {} tokens, {:.1} tokens/s; memory of the device: \
             {:.0} MiB ({:.0} MiB at most), of these caches {:.0} MiB ({keys}/{values}){draft}",
            self.load.as_secs_f64(),
            self.prompt_tokens,
            rate(self.prompt_tokens, self.prompt),
            self.tokens.len(),
            rate(self.tokens.len(), self.generation),
            mib(used),
            mib(peak),
            mib(self.memory as u64),
        );
    }

    /// Says why the text ends where a user may want more of it.
    pub fn say_why(&self, stop: Stop) {
        match stop {
            Stop::Length => log::info!("ended after {} tokens (--max-tokens)", self.tokens.len()),
            Stop::Context => log::warn!("the context of {} tokens is full (--context)", self.context),
            _ => {}
        }
    }
}
