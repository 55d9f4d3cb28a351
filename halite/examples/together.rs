//! Several texts that a language model writes together: each step reads its weights once for all of them. Texts come and go between steps.
//!
//!     cargo run --release --example together -- model.gguf 'The sky is' 'Two and two are' 'Once upon a time'

use halite::{Generator, GeneratorOptions, Next, RunOptions, Sampler, Sampling, Sequence, Session};

/// Tokens that each text gets.
const TOKENS: usize = 24;

/// A text that is written.
struct Text {
    sequence: Sequence,
    sampler: Sampler,
    prompt: usize,
}

fn begin(generator: &Generator, prompt: &str) -> halite::Result<Text> {
    let tokens = generator.tokenize(prompt, false);
    let mut sequence = generator.sequence()?;
    sequence.prompt(&tokens, &RunOptions::new())?;
    Ok(Text { sequence, sampler: Sampler::new(Sampling::greedy()), prompt: tokens.len() })
}

/// What is written behind each prompt; a prompt waits while four others are at work.
pub fn write(model: &str, prompts: &[String]) -> halite::Result<Vec<String>> {
    let generator = Session::builder().model(model).generator(GeneratorOptions::new().batch(4))?;
    let mut waiting = prompts.iter().enumerate();
    let (mut texts, mut written) = (Vec::new(), vec![String::new(); prompts.len()]);
    loop {
        while texts.len() < generator.batch().max(1) {
            let Some((number, prompt)) = waiting.next() else { break };
            texts.push((number, begin(&generator, prompt)?));
        }
        if texts.is_empty() {
            return Ok(written);
        }
        let mut all: Vec<_> =
            texts.iter_mut().map(|(_, text)| (&mut text.sequence, &mut text.sampler)).collect();
        let next = generator.step(&mut all, &RunOptions::new())?;
        let mut next = next.into_iter();
        texts.retain(|(number, text)| {
            let own = &text.sequence.tokens()[text.prompt..];
            let goes_on = matches!(next.next(), Some(Next::Token(_))) && own.len() < TOKENS;
            if !goes_on {
                written[*number] = generator.text(own);
            }
            goes_on
        });
    }
}

#[allow(dead_code, reason = "a test calls the function above")]
fn main() -> halite::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(model) = arguments.next() else {
        eprintln!("together: which model, and which texts does it write on? MODEL.gguf TEXT…");
        std::process::exit(2);
    };
    let prompts: Vec<String> = arguments.collect();
    for (prompt, text) in prompts.iter().zip(write(&model, &prompts)?) {
        println!("{prompt}{text}");
    }
    Ok(())
}
