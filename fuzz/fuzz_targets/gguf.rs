//! GGUF files: an error, or tensors within the file; tokenizers and chat templates of the metadata; then all the way to modules.
#![no_main]

use bytes::Bytes;
use halite_formats::gguf::{Gguf, Value};
use halite_text::{ChatTemplate, Message, Tokenizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let file = Bytes::copy_from_slice(data);
    let Ok(gguf) = Gguf::read(&file) else { return };
    for tensor in &gguf.tensors {
        assert!(tensor.offset + tensor.length <= data.len() as u64);
    }
    for (_, value) in &gguf.metadata {
        let Value::Array(array) = value else { continue };
        assert!(array.texts().count() as u64 <= array.len() && array.scalars().count() as u64 <= array.len());
    }
    if let Ok(tokenizer) = Tokenizer::read(&gguf) {
        for with_control in [false, true] {
            let tokens = tokenizer.encode("Hello,  world's 12345\n\n\u{e9}<|end|>", with_control);
            assert!(tokens.iter().all(|token| tokenizer.vocabulary().kind(*token).is_some()));
            tokenizer.decode(&tokens, true);
        }
        if let Ok(Some(template)) = ChatTemplate::read(&gguf, &tokenizer) {
            let _ = template.prompt(&[Message::new("user", "Hello")]);
        }
    }
    halite_fuzz::compile(file, "gguf");
});
