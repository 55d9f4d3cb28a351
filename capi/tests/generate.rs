//! Language models through the C interface, on a Vulkan device. The models: `conformance/models/gguf_tiny.py`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::{
    ffi::{CStr, CString, c_char, c_void},
    ptr,
};

use common::{models::*, *};
use halite_c::{
    builder::*, device::*, embedder::*, failure::*, generator::*, options::*, sequence::*, session::*,
    tensor::*, tokens::*,
};

fn generator(device: *const halite_device, name: &str, scoring: bool) -> *mut halite_generator {
    // SAFETY: handles are ours, the structure states its size.
    unsafe {
        let builder = builder(device, name);
        let mut wanted: halite_generator_options = std::mem::zeroed();
        wanted.struct_size = size_of::<halite_generator_options>();
        (wanted.context, wanted.scoring) = (64, scoring);
        let made = made(|out| halite_session_builder_generator(builder, &wanted, ptr::null(), out)).unwrap();
        halite_session_builder_free(builder);
        made
    }
}

/// What llama.cpp made of a model: prompt, most likely tokens, logits behind the prompt.
fn told(name: &str) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
    let path = repo(&format!("compiler/tests/data/gguf/{name}.json"));
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path.to_str().unwrap()).unwrap()).unwrap();
    let numbers = |key: &str| {
        json[key].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect::<Vec<_>>()
    };
    let tokens = |key: &str| numbers(key).into_iter().map(|number| number as u32).collect();
    (tokens("prompt"), tokens("greedy"), numbers("logits").into_iter().map(|number| number as f32).collect())
}

/// What a callback was told, and after how many pieces it has enough.
struct Reader {
    text: String,
    tokens: Vec<u32>,
    most: usize,
}

unsafe extern "C" fn read_piece(context: *mut c_void, piece: *const halite_piece) -> bool {
    // SAFETY: the context is the reader of the call, the piece lives until this returns.
    unsafe {
        let (reader, piece) = (&mut *context.cast::<Reader>(), &*piece);
        let text = CStr::from_ptr(piece.text).to_str().unwrap();
        assert_eq!(text.len(), piece.text_size);
        reader.text.push_str(text);
        if piece.token != HALITE_NO_TOKEN {
            reader.tokens.push(piece.token);
        }
        reader.tokens.len() < reader.most
    }
}

/// Writes, by the most likely tokens.
fn written(
    sequence: *mut halite_sequence,
    most: usize,
    enough: usize,
    stops: &[&CStr],
) -> Result<(halite_stop, Reader), Told> {
    written_so(sequence, most, enough, stops, |_| {})
}

/// The same with what `how` says.
fn written_so(
    sequence: *mut halite_sequence,
    most: usize,
    enough: usize,
    stops: &[&CStr],
    how: impl FnOnce(&mut halite_generation),
) -> Result<(halite_stop, Reader), Told> {
    let mut reader = Reader { text: String::new(), tokens: Vec::new(), most: enough };
    let stops: Vec<_> = stops.iter().map(|stop| stop.as_ptr()).collect();
    // SAFETY: the structure states its size, all it points to lives until the call returns.
    unsafe {
        let mut generation: halite_generation = std::mem::zeroed();
        generation.struct_size = size_of::<halite_generation>();
        generation.most = most;
        (generation.stops, generation.stop_count) = (stops.as_ptr(), stops.len());
        generation.told = Some(read_piece);
        generation.context = (&raw mut reader).cast();
        how(&mut generation);
        let mut stop = 0;
        outcome(halite_sequence_generate(sequence, &generation, ptr::null(), &mut stop))?;
        Ok((stop, reader))
    }
}

/// What ends a sequence of forty tokens early, which writes all of this when nothing does; it is without tokens then.
///
/// # Safety
/// The sequence is a handle.
unsafe fn ends_early(fork: *mut halite_sequence, saved: &[u8], all: &Reader) {
    // SAFETY: the caller's promise; arrays are as long as is said.
    unsafe {
        // The callback has enough; a text ends it; what only began like one is told in the end.
        let (stop, some) = written(fork, 16, 3, &[]).unwrap();
        assert_eq!((stop, &some.tokens[..]), (HALITE_STOP_CALLER, &all.tokens[..3]));
        outcome(halite_sequence_load(fork, saved.as_ptr().cast(), saved.len())).unwrap();
        assert_eq!(halite_sequence_count(fork), 40);
        let part = CString::new(&all.text[all.text.len() / 2..]).unwrap();
        let (stop, cut) = written(fork, 16, usize::MAX, &[&part]).unwrap();
        let at = all.text.find(part.to_str().unwrap()).unwrap();
        assert_eq!((stop, &cut.text[..]), (HALITE_STOP_TEXT, &all.text[..at]));
        halite_sequence_truncate(fork, 40);
        let last = all.text.chars().next_back().unwrap();
        let like = CString::new(format!("{last} and no such text")).unwrap();
        assert_eq!(written(fork, 16, usize::MAX, &[&like]).unwrap().1.text, all.text);
        assert!(written(fork, 1, 1, &[c""]).err().unwrap().text.contains("is not empty"));
        let told = outcome(halite_sequence_load(fork, c"no".as_ptr().cast(), 2)).unwrap_err();
        assert!(
            told.kind == HALITE_ERROR_INVALID_INPUT && told.text.contains("no saved sequence"),
            "{}",
            told.text
        );
        assert_eq!(halite_sequence_count(fork), 0);
    }
}

#[test]
fn tokens_are_those_of_llama_cpp_and_sequences_go_their_own_ways() {
    let Some(device) = device() else { return };
    let (prompt, greedy, logits) = told("llama");
    let generator = generator(device, "llama", false);
    let sequence = sequence_of(generator, &prompt);
    // SAFETY: handles are ours, arrays as long as is said.
    unsafe {
        halite_device_free(device);
        assert_eq!((halite_generator_context(generator), halite_sequence_count(sequence)), (64, 40));
        let own = read(made(|out| halite_sequence_logits(sequence, out)).unwrap());
        let off = own.iter().zip(&logits).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(
            own.len() == logits.len()
                && own.len() == halite_generator_vocabulary_size(generator)
                && off < 0.03,
            "{off}"
        );
        let saved = taken(made(|out| halite_sequence_save(sequence, out)).unwrap());
        let fork = made(|out| halite_sequence_fork(sequence, out)).unwrap();

        let ended = greedy.iter().position(|token| halite_generator_is_end(generator, *token));
        let wanted = &greedy[..ended.unwrap_or(16).min(16)];
        let (stop, all) = written(sequence, 16, usize::MAX, &[]).unwrap();
        assert_eq!(stop, if ended.is_some() { HALITE_STOP_END } else { HALITE_STOP_LENGTH });
        assert_eq!(all.tokens, wanted);
        let text =
            taken(made(|out| halite_generator_text(generator, wanted.as_ptr(), wanted.len(), out)).unwrap());
        assert_eq!(all.text.as_bytes(), text);
        let tokens = owned(made(|out| halite_sequence_tokens(sequence, out)).unwrap());
        assert_eq!(tokens, [&prompt[..], wanted].concat());

        ends_early(fork, &saved, &all);
        halite_sequence_free(sequence);
        halite_sequence_free(fork);
        halite_generator_free(generator);
    }
}

#[test]
fn logits_that_have_to_be_computed_are_none() {
    let Some(device) = device() else { return };
    let generator = generator(device, "llama", true);
    // SAFETY: handles are ours, arrays as long as is said.
    unsafe {
        let sequence = made(|out| halite_generator_sequence(generator, out)).unwrap();
        let mut none = ptr::dangling_mut();
        outcome(halite_sequence_logits(sequence, &mut none)).unwrap();
        assert!(none.is_null());
        let (tokens, mut scores) = ([5, 6, 7, 8], [1.0; 4]);
        outcome(halite_sequence_score(sequence, tokens.as_ptr(), 4, ptr::null(), scores.as_mut_ptr()))
            .unwrap();
        assert!(scores[0] == 0.0 && scores[1..].iter().all(|score| *score < 0.0), "{scores:?}");
        let told = outcome(halite_sequence_score(sequence, tokens.as_ptr(), 4, ptr::null(), ptr::null_mut()))
            .unwrap_err();
        assert!(told.text.contains("'scores' is NULL"), "{}", told.text);
        let told = outcome(halite_sequence_append(sequence, [9999].as_ptr(), 1, ptr::null())).unwrap_err();
        assert!(told.text.contains("no token 9999"), "{}", told.text);
        assert!(halite_sequence_size(sequence) > 0);
        // A token that is set stops it.
        let token = halite_cancel_token_create();
        halite_cancel_token_cancel(token);
        let mut options: halite_run_options = std::mem::zeroed();
        (options.struct_size, options.cancel) = (size_of::<halite_run_options>(), token);
        let told = outcome(halite_sequence_append(sequence, tokens.as_ptr(), 4, &options)).unwrap_err();
        assert_eq!((told.kind, halite_sequence_count(sequence)), (HALITE_ERROR_CANCELLED, 4));
        halite_cancel_token_free(token);
        halite_sequence_free(sequence);
        halite_generator_free(generator);
        halite_device_free(device);
    }
}

#[test]
fn choices_are_halite_s_own_where_they_are_asked_for() {
    // SAFETY: structures state their sizes.
    unsafe {
        let mut generation: halite_generation = std::mem::zeroed();
        generation.struct_size = size_of::<halite_generation>();
        (generation.seed, generation.most) = (7, 9);
        outcome(halite_generation_sampling(&mut generation)).unwrap();
        let own = halite::Sampling::default();
        assert_eq!(
            (generation.temperature, generation.top_k, generation.top_p),
            (own.temperature, own.top_k, own.top_p)
        );
        assert_eq!(
            (generation.min_p, generation.repeat_penalty, generation.repeat_last),
            (own.min_p, own.repeat_penalty, own.repeat_last)
        );
        assert_eq!((generation.seed, generation.most), (7, 9));
        assert!(outcome(halite_generation_sampling(ptr::null_mut())).is_err());
    }
}

#[test]
fn conversations_and_texts_become_tokens() {
    let Some(device) = device() else { return };
    let generator = generator(device, "gemma3", false);
    let message = halite_message { role: c"user".as_ptr(), content: c"in the".as_ptr() };
    // SAFETY: handles are ours, arrays as long as is said.
    unsafe {
        let prompt = taken(made(|out| halite_generator_chat(generator, &message, 1, out)).unwrap());
        assert!(prompt.ends_with(b"<|turn|>assistant\n"));
        let with = |tools: *const c_char, values: *const c_char| {
            made(|out| halite_generator_chat_with(generator, &message, 1, tools, values, out))
        };
        assert_eq!(taken(with(ptr::null(), c"{\"other\": 1}".as_ptr()).unwrap()), prompt);
        for (tools, values, wrong) in [
            (ptr::null(), c"{\"messages\": []}".as_ptr(), "'messages'"),
            (ptr::null(), c"[".as_ptr(), "template"),
            (c"[]".as_ptr(), ptr::null(), "takes no tools"),
        ] {
            let told = with(tools, values).unwrap_err().text;
            assert!(told.contains(wrong), "{told}");
        }
        let prompt = CString::new(prompt).unwrap();
        let tokens = |with_control| {
            owned(
                made(|out| halite_generator_tokenize(generator, prompt.as_ptr(), with_control, out)).unwrap(),
            )
        };
        let (plain, control) = (tokens(false), tokens(true));
        assert!(plain.len() > control.len());
        let sequence = sequence_of(generator, &control);
        let mut kept = 0;
        outcome(halite_sequence_prompt(sequence, plain.as_ptr(), plain.len(), ptr::null(), &mut kept))
            .unwrap();
        assert_eq!(kept, plain.iter().zip(&control).take_while(|(a, b)| a == b).count());
        let unsaid = halite_message { role: ptr::null(), content: ptr::null() };
        assert!(
            made(|out| halite_generator_chat(generator, &unsaid, 1, out))
                .unwrap_err()
                .text
                .contains("'role' is NULL")
        );
        let session = made(|out| halite_generator_session(generator, out)).unwrap();
        assert_eq!(halite_session_device_count(session), 1);
        halite_session_free(session);
        halite_sequence_free(sequence);
        halite_generator_free(generator);
        halite_device_free(device);
    }
}

#[test]
fn vectors_are_those_of_llama_cpp() {
    let Some(device) = device() else { return };
    let path = repo("compiler/tests/data/gguf/bert.json");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path.to_str().unwrap()).unwrap()).unwrap();
    let wanted: Vec<f32> =
        json["vector"].as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect();
    let text = CString::new(json["text"].as_str().unwrap()).unwrap();
    // SAFETY: handles are ours, arrays as long as is said.
    unsafe {
        let builder = builder(device, "bert");
        let embedder = made(|out| halite_session_builder_embedder(builder, ptr::null(), out)).unwrap();
        // It is empty now.
        let told = made(|out| halite_session_builder_embedder(builder, ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("the builder is empty"), "{}", told.text);
        halite_session_builder_free(builder);
        let tokens = owned(made(|out| halite_embedder_tokenize(embedder, text.as_ptr(), out)).unwrap());
        let vector = |normalize| {
            read(
                made(|out| {
                    halite_embedder_embed(
                        embedder,
                        tokens.as_ptr(),
                        tokens.len(),
                        normalize,
                        ptr::null(),
                        out,
                    )
                })
                .unwrap(),
            )
        };
        assert!(vector(false).iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 0.03));
        assert!((vector(true).iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-4);
        assert_eq!(halite_embedder_longest(embedder), 128);
        let told =
            made(|out| halite_embedder_embed(embedder, ptr::null(), 0, true, ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("0 tokens"), "{}", told.text);
        halite_embedder_free(embedder);
        halite_device_free(device);
    }
}

#[test]
fn models_of_other_kinds_and_unknown_numbers_are_refused() {
    let Some(device) = device() else { return };
    // SAFETY: handles are ours, the structure states its size.
    unsafe {
        let encoder = builder(device, "bert");
        let told =
            made(|out| halite_session_builder_generator(encoder, ptr::null(), ptr::null(), out)).unwrap_err();
        assert!(
            told.kind == HALITE_ERROR_UNSUPPORTED && told.text.contains("is an encoder"),
            "{}",
            told.text
        );
        halite_session_builder_free(encoder);
        let mut wanted: halite_generator_options = std::mem::zeroed();
        (wanted.struct_size, wanted.keys) = (size_of::<halite_generator_options>(), 9);
        let other = builder(device, "llama");
        let told =
            made(|out| halite_session_builder_generator(other, &wanted, ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("no type 9 of caches"), "{}", told.text);
        (wanted.keys, wanted.choose_on) = (HALITE_CACHE_F16, 3);
        let told =
            made(|out| halite_session_builder_generator(other, &wanted, ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("no place 3 where tokens are chosen"), "{}", told.text);
        halite_session_builder_free(other);
        halite_device_free(device);
    }
}

#[test]
fn tokens_are_chosen_where_the_program_says() {
    let Some(device) = device() else { return };
    let (prompt, greedy, _) = told("llama");
    // SAFETY: handles are ours, the structure states its size.
    unsafe {
        for place in [HALITE_CHOOSE_ON_HOST, HALITE_CHOOSE_ON_DEVICE] {
            let builder = builder(device, "llama");
            let mut wanted: halite_generator_options = std::mem::zeroed();
            (wanted.struct_size, wanted.context) = (size_of::<halite_generator_options>(), 64);
            wanted.choose_on = place;
            let generator =
                made(|out| halite_session_builder_generator(builder, &wanted, ptr::null(), out)).unwrap();
            let sequence = sequence_of(generator, &prompt);
            let (stop, some) = written(sequence, 9, 3, &[]).unwrap();
            assert_eq!((stop, &some.tokens[..]), (HALITE_STOP_CALLER, &greedy[..3]));
            // What a device chose by stays there.
            let mut logits = ptr::null_mut();
            outcome(halite_sequence_logits(sequence, &mut logits)).unwrap();
            assert_eq!(logits.is_null(), place == HALITE_CHOOSE_ON_DEVICE);
            halite_tensor_free(logits);
            halite_sequence_free(sequence);
            halite_generator_free(generator);
            halite_session_builder_free(builder);
        }
        halite_device_free(device);
    }
}

#[test]
fn texts_go_on_behind_their_end_where_the_program_says() {
    let Some(device) = device() else { return };
    let generator = generator(device, "llama", false);
    let sequence = sequence_of(generator, &[3]);
    let write = |seed: u64, ignore_end: bool| {
        // SAFETY: the sequence is ours.
        unsafe { halite_sequence_truncate(sequence, 1) };
        let how = |generation: &mut halite_generation| {
            (generation.seed, generation.temperature, generation.ignore_end) = (seed, 3.0, ignore_end);
        };
        written_so(sequence, 40, usize::MAX, &[], how).unwrap()
    };
    let (seed, short) = (0..50)
        .find_map(|seed| Some((seed, write(seed, false))).filter(|(_, (stop, _))| *stop == HALITE_STOP_END))
        .expect("one of fifty texts ends");
    let (stop, long) = write(seed, true);
    assert_eq!((stop, long.tokens.len()), (HALITE_STOP_LENGTH, 40));
    let (same, rest) = long.tokens.split_at(short.1.tokens.len());
    assert_eq!(same, short.1.tokens);
    // SAFETY: handles are ours.
    unsafe {
        assert!(halite_generator_is_end(generator, rest[0]));
        halite_sequence_free(sequence);
        halite_generator_free(generator);
        halite_device_free(device);
    }
}

#[test]
fn decoders_in_other_formats_take_the_tokenizer_of_a_file() {
    let Some(device) = device() else { return };
    let tokenizer = repo("compiler/tests/data/gguf/llama.gguf");
    // SAFETY: handles are ours, the structure states its size, paths are copied.
    unsafe {
        let builder = builder_of(device, "conformance/tests/data/state/decoder.onnx");
        let mut wanted: halite_generator_options = std::mem::zeroed();
        (wanted.struct_size, wanted.tokenizer) = (size_of::<halite_generator_options>(), tokenizer.as_ptr());
        let generator =
            made(|out| halite_session_builder_generator(builder, &wanted, ptr::null(), out)).unwrap();
        assert_eq!(halite_generator_context(generator), 96, "what its caches have room for");
        halite_generator_free(generator);
        halite_session_builder_free(builder);
        let without = builder_of(device, "conformance/tests/data/state/decoder.onnx");
        let told =
            made(|out| halite_session_builder_generator(without, ptr::null(), ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("has no tokenizer"), "{}", told.text);
        halite_session_builder_free(without);
        halite_device_free(device);
    }
}
