//! Files of tokenizers, of each kind: an error, or tokens that there are, and text again.
#![no_main]

use bytes::Bytes;
use halite_text::{ChatTemplate, Message, Told, Tokenizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let lists = Tokenizer::from_tiktoken(data, "gpt-2", &[]);
    for tokenizer in [Tokenizer::from_file_bytes(&Bytes::copy_from_slice(data)), lists].into_iter().flatten() {
        for with_control in [false, true] {
            let tokens = tokenizer.encode("Hello,  world's 12345\n\n\u{e9}<s>\u{3000}\u{4e2d}", with_control);
            assert!(tokens.iter().all(|token| tokenizer.vocabulary().kind(*token).is_some()));
            tokenizer.decode(&tokens, true);
        }
    }
    if let Ok(template) = std::str::from_utf8(data).map_or(Err(()), |text| ChatTemplate::new(text, "<s>", "</s>").map_err(drop)) {
        let _ = template.prompt(&[Message::new("user", "Hello")]);
    }
    if let Ok(values) = std::str::from_utf8(data) {
        let source = "{{ enable_thinking }}{% for name in documents or [] %}{{ name | tojson }}{% endfor %}";
        let template = ChatTemplate::new(source, "<s>", "</s>").expect("this is a template");
        let _ = template.prompt_until(&[], Told { tools: None, values: Some(values) }, None);
    }
});
