//! JSON schemas: an error, or texts that go on byte by byte to an end, and are JSON then.
#![no_main]

use halite_text::Schema;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (schema, choices) = match data.iter().position(|byte| *byte == 0) {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    let Ok(Ok(schema)) = std::str::from_utf8(schema).map(Schema::parse) else { return };
    let (mut text, mut bytes) = (schema.begin(), Vec::new());
    for choice in choices.iter().take(200) {
        let next: Vec<u8> = (0..=255).filter(|byte| text.with(&[*byte]).is_some()).collect();
        if next.is_empty() {
            assert!(text.may_end(), "{:?} leads nowhere", String::from_utf8_lossy(&bytes));
            break;
        }
        let byte = next[usize::from(*choice) % next.len()];
        let Some(longer) = text.with(&[byte]) else { return };
        text = longer;
        bytes.push(byte);
    }
    if text.may_end() {
        // As a schema it may be wrong, and as JSON not.
        let read = std::str::from_utf8(&bytes).map(Schema::parse);
        let is_json = |told: String| !told.contains("is no JSON");
        assert!(matches!(read, Ok(Ok(_))) || matches!(read, Ok(Err(error)) if is_json(error.to_string())), "{bytes:?}");
    }
});
