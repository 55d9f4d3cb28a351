//! Sequences that take steps together, through the C interface, on a Vulkan device.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::{ffi::CStr, ptr};

use common::{models::*, *};
use halite_c::{builder::*, device::*, failure::*, generator::*, sequence::*, steps::*, tokens::*};

/// A generator of which four sequences take steps together, on the host or on the device.
fn of_several(device: *const halite_device, place: halite_choose_on) -> *mut halite_generator {
    // SAFETY: handles are ours, the structure states its size.
    unsafe {
        let builder = builder(device, "llama");
        let mut wanted: halite_generator_options = std::mem::zeroed();
        (wanted.struct_size, wanted.context) = (size_of::<halite_generator_options>(), 64);
        (wanted.batch, wanted.choose_on) = (4, place);
        let made = made(|out| halite_session_builder_generator(builder, &wanted, ptr::null(), out)).unwrap();
        halite_session_builder_free(builder);
        made
    }
}

#[test]
fn steps_of_several_sequences_are_those_of_each() {
    let Some(device) = device() else { return };
    let prompts = [vec![5, 6, 7], (3..30).collect(), vec![9, 40]];
    for place in [HALITE_CHOOSE_ON_HOST, HALITE_CHOOSE_ON_DEVICE] {
        let generator = of_several(device, place);
        // SAFETY: handles are ours, arrays as long as is said.
        unsafe {
            assert_eq!(halite_generator_batch(generator), 4);
            let mut generation: halite_generation = std::mem::zeroed();
            generation.struct_size = size_of::<halite_generation>();
            outcome(halite_generation_sampling(&mut generation)).unwrap();
            (generation.ignore_end, generation.top_k, generation.most) = (true, 20, 6);
            let how = |number: usize, own: &mut halite_generation| {
                own.seed = number as u64;
                // One of them takes the most likely tokens.
                own.temperature = if number > 0 { 0.9 } else { 0.0 };
            };
            let mut writers = Vec::new();
            for (number, prompt) in prompts.iter().enumerate() {
                how(number, &mut generation);
                let sampler = made(|out| halite_sampler_create(&generation, out)).unwrap();
                let sequence = sequence_of(generator, prompt);
                writers.push(halite_writer { sequence, sampler, token: 0, stop: 9 });
            }
            for _ in 0..6 {
                outcome(halite_generator_step(generator, writers.as_mut_ptr(), 3, ptr::null())).unwrap();
                assert!(writers.iter().all(|own| own.stop == 0 && own.token != HALITE_NO_TOKEN));
            }
            for (number, (own, prompt)) in writers.iter().zip(&prompts).enumerate() {
                let found = owned(made(|out| halite_sequence_tokens(own.sequence, out)).unwrap());
                let single = sequence_of(generator, prompt);
                how(number, &mut generation);
                outcome(halite_sequence_generate(single, &generation, ptr::null(), ptr::null_mut())).unwrap();
                let alone = owned(made(|out| halite_sequence_tokens(single, out)).unwrap());
                assert_eq!(found, alone, "text {number}");
                halite_sequence_free(single);
            }
            for own in writers {
                halite_sequence_free(own.sequence);
                halite_sampler_free(own.sampler);
            }
            halite_generator_free(generator);
        }
    }
    // SAFETY: the handle is ours.
    unsafe { halite_device_free(device) };
}

#[test]
fn who_takes_a_step_is_checked() {
    let Some(device) = device() else { return };
    let generator = of_several(device, HALITE_CHOOSE_ON_AUTO);
    let [first, second] = [60, 4].map(|length| sequence_of(generator, &(3..3 + length).collect::<Vec<_>>()));
    // SAFETY: handles are ours, arrays as long as is said.
    unsafe {
        let [one, other] = [(), ()].map(|()| made(|out| halite_sampler_create(ptr::null(), out)).unwrap());
        let of = |sequence, sampler| halite_writer { sequence, sampler, token: 7, stop: 7 };
        let step = |all: &mut [halite_writer]| {
            outcome(halite_generator_step(generator, all.as_mut_ptr(), all.len(), ptr::null()))
        };
        let refused = |all: &mut [halite_writer], text: &str| {
            let told = step(all).unwrap_err();
            assert!(told.kind == HALITE_ERROR_INVALID_INPUT && told.text.contains(text), "{}", told.text);
            assert!(all.iter().all(|own| (own.token, own.stop) == (7, 7)), "nothing is written");
        };
        refused(&mut [of(first, one), of(first, other)], "a sequence takes part in a step once");
        refused(&mut [of(first, one), of(second, one)], "a sampler takes part in a step once");
        refused(&mut [of(ptr::null_mut(), one)], "'sequence' is NULL");
        refused(&mut [of(first, ptr::null_mut())], "'sampler' is NULL");
        step(&mut []).unwrap();
        let both = [first, second];
        let append = |tokens: [u32; 2]| {
            outcome(halite_generator_append_each(generator, both.as_ptr(), tokens.as_ptr(), 2, ptr::null()))
        };
        assert!(append([9999, 3]).unwrap_err().text.contains("no token 9999"));
        for token in 10..14 {
            append([token, token + 1]).unwrap();
        }
        assert_eq!(both.map(|own| halite_sequence_count(own)), [64, 8]);
        let mut all = [of(first, one), of(second, other)];
        step(&mut all).unwrap();
        assert_eq!((all[0].token, all[0].stop), (HALITE_NO_TOKEN, HALITE_STOP_CONTEXT));
        assert!(all[1].stop == 0 || all[1].stop == HALITE_STOP_END);
        both.into_iter().for_each(|own| halite_sequence_free(own));
        [one, other].into_iter().for_each(|own| halite_sampler_free(own));
        halite_sampler_free(ptr::null_mut());
        halite_generator_free(generator);
        halite_device_free(device);
    }
}

#[test]
fn answers_follow_schemas_alone_and_in_steps() {
    const SCHEMA: &CStr = c"{\"type\": \"object\", \"properties\": {\"a\": {\"enum\": [\"in the\", 12]}}, \"required\": [\"a\"]}";
    let Some(device) = device() else { return };
    let generator = of_several(device, HALITE_CHOOSE_ON_AUTO);
    // SAFETY: handles are ours, the structure states its size, texts end with a zero.
    unsafe {
        let mut generation: halite_generation = std::mem::zeroed();
        generation.struct_size = size_of::<halite_generation>();
        (generation.temperature, generation.json_schema, generation.most) = (1.0, SCHEMA.as_ptr(), 50);
        let text = |sequence| {
            let tokens = owned(made(|out| halite_sequence_tokens(sequence, out)).unwrap());
            let tokens = &tokens[3..];
            let text =
                made(|out| halite_generator_text(generator, tokens.as_ptr(), tokens.len(), out)).unwrap();
            let text = taken(text);
            let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
            assert!(value["a"] == "in the" || value["a"] == 12, "{value}");
            text
        };
        let sequences = [(); 2].map(|()| sequence_of(generator, &[5, 6, 7]));
        let mut stop = 0;
        outcome(halite_sequence_generate(sequences[0], &generation, ptr::null(), &mut stop)).unwrap();
        assert_eq!(stop, HALITE_STOP_END);
        let sampler = made(|out| halite_generator_schema_sampler(generator, &generation, out)).unwrap();
        let mut writer = halite_writer { sequence: sequences[1], sampler, token: 0, stop: 0 };
        while writer.stop == 0 {
            outcome(halite_generator_step(generator, &mut writer, 1, ptr::null())).unwrap();
        }
        assert_eq!(text(sequences[0]), text(sequences[1]));
        // Samplers of no model, and of no schema; schemas that are none, and that are not supported.
        let refused = made(|out| halite_sampler_create(&generation, out)).err().unwrap();
        assert!(refused.text.contains("halite_generator_schema_sampler makes it"), "{}", refused.text);
        for (schema, kind, part) in [
            (ptr::null(), HALITE_ERROR_INVALID_INPUT, "'json_schema' is NULL"),
            (c"{".as_ptr(), HALITE_ERROR_INVALID_INPUT, "is no JSON"),
            (c"{\"not\": {}}".as_ptr(), HALITE_ERROR_UNSUPPORTED, "'not'"),
        ] {
            generation.json_schema = schema;
            let told =
                made(|out| halite_generator_schema_sampler(generator, &generation, out)).err().unwrap();
            assert!(told.kind == kind && told.text.contains(part), "{}", told.text);
        }
        sequences.into_iter().for_each(|own| halite_sequence_free(own));
        halite_sampler_free(sampler);
        halite_generator_free(generator);
        halite_device_free(device);
    }
}
