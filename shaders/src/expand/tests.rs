use super::*;

fn names(text: &str) -> Vec<String> {
    let items = expand(text, &VARIANTS).unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

/// The one item of a list.
fn only(text: &str, schema: &Schema) -> Value {
    let mut items = expand(text, schema).unwrap();
    assert_eq!(items.len(), 1, "{items:?}");
    Value::Object(items.remove(0))
}

fn refused(text: &str) -> String {
    expand(text, &VARIANTS).unwrap_err().to_string()
}

#[test]
fn an_entry_stands_for_every_combination_and_the_first_axis_is_the_outermost() {
    let list = r#"{"axes": {"b": ["2", "1"], "a": {"y": {}, "x": {}}},
        "variants": [{"name": "{a}{b}"}, {"name": "last"}]}"#;
    assert_eq!(names(list), ["y2", "y1", "x2", "x1", "last"]);
}

#[test]
fn conditions_choose_combinations() {
    let list = |conditions: &str| {
        let all = names(&format!(
            r#"{{"axes": {{"a": ["x", "y"], "b": ["1", "2"]}}, "variants": [{{"name": "{{a}}{{b}}", {conditions}}}, {{"name": "all.{{a}}{{b}}"}}]}}"#
        ));
        all.into_iter().filter(|name| !name.starts_with("all.")).collect::<Vec<_>>()
    };
    assert_eq!(list(r#""only": [{"a": "x", "b": "1"}, {"b": ["2"]}]"#), ["x1", "x2", "y2"]);
    assert_eq!(list(r#""except": [{"a": "x", "b": "1"}]"#), ["x2", "y1", "y2"]);
    assert_eq!(list(r#""only": [{"a": "x"}], "except": [{"b": "2"}]"#), ["x1"]);
}

#[test]
fn fields_are_joined_and_exceptions_replace() {
    let list = r#"{"axes": {"a": {"x": {"memory": "p", "order": -1, "needs": {"subgroup": ["vote"]}, "params": {"n": 1}}}},
        "variants": [{"name": "{a}", "build": "of_{a}{a.memory}", "order": 10, "params": {"m": 2},
            "needs": {"subgroup": ["ballot"]}, "also": [{"when": {"a": "x"}, "params": {"n": 3}, "note": "n is 3"}]}]}"#;
    let expected = serde_json::json!({"name": "x", "build": "of_xp", "order": 9, "params": {"m": 2, "n": 3},
        "needs": {"subgroup": ["vote", "ballot"]}, "note": "n is 3"});
    assert_eq!(only(list, &VARIANTS), expected);
}

#[test]
fn a_text_in_a_list_names_further_axes_and_digits_are_numbers_in_params_alone() {
    let list = r#"{"axes": {"n": ["4"], "t": ["f32", "f16"], "i": ["i32", "i64"]},
        "variants": [{"name": "b{n}", "signatures": ["{t}_{i}", "b{n}"], "params": {"unit": "{n}"}, "template": "{n}"}]}"#;
    let expected = serde_json::json!({"name": "b4", "params": {"unit": 4}, "template": "4",
        "signatures": ["f32_i32", "f32_i64", "f16_i32", "f16_i64", "b4"]});
    assert_eq!(only(list, &VARIANTS), expected);
    let list =
        r#"{"axes": {"n": ["4"]}, "builds": [{"name": "b{n}", "source": "s", "defines": {"UNIT": "{n}"}}]}"#;
    assert_eq!(only(list, &BUILDS)["defines"]["UNIT"], "4");
}

#[test]
fn unknown_names_list_the_known_ones() {
    let axes = r#""axes": {"a": {"x": {"w": "1"}, "y": {"w": "2"}}}"#;
    let entry = |entry: &str| refused(&format!(r#"{{{axes}, "variants": [{entry}]}}"#));
    for (error, name, known) in [
        (refused(r#"{"axis": {}, "variants": []}"#), "key 'axis'", "'axes', 'variants'"),
        (
            entry(r#"{"name": "{a}{a.w}", "nedes": {}}"#),
            "key 'nedes'",
            "'needs', 'order', 'note', 'only', 'except', 'also'",
        ),
        (entry(r#"{"name": "{b}"}"#), "axis 'b'", "'a'"),
        (entry(r#"{"name": "{a}{a.v}"}"#), "word of 'a' 'v'", "'w'"),
        (entry(r#"{"name": "{a}{a.w}", "only": [{"a": "z"}]}"#), "value of 'a' 'z'", "'x', 'y'"),
        (entry(r#"{"name": "{a}{a.w}", "except": [{"b": "x"}]}"#), "axis of the name 'b'", "'a'"),
        (
            entry(r#"{"name": "{a}{a.w}", "also": [{"when": {"a": "x"}, "name": "n"}]}"#),
            "key of 'also' 'name'",
            "'when'",
        ),
        (
            refused(r#"{"axes": {"a": {"x": {"nedes": {}}}}, "variants": []}"#),
            "field (words are texts) 'nedes'",
            "'needs'",
        ),
    ] {
        assert!(error.contains(&format!("unknown {name}; there are: ")) && error.contains(known), "{error}");
    }
}

#[test]
fn what_is_there_twice_or_has_no_effect_is_refused() {
    let list =
        |axes: &str, entries: &str| refused(&format!(r#"{{"axes": {{{axes}}}, "variants": [{entries}]}}"#));
    let a = r#""a": ["x", "y"]"#;
    for (error, part) in [
        (list(&format!("{a}, {a}"), ""), "the key 'a' is there twice"),
        (list(r#""a": ["x", "x"]"#, ""), "the value 'x' is there twice"),
        (list("", r#"{"name": "n"}, {"name": "n"}"#), "n: two of the variants have this name"),
        (list(r#""a": {"x": {"note": "1"}}"#, r#"{"name": "{a}", "note": "2"}"#), "{a}: 'note' is set twice"),
        (list(a, ""), "axis 'a': the axis has no effect"),
        (list(a, r#"{"name": "{a}", "only": [{"a": "x"}]}"#), "axis 'a': the value 'y' has no effect"),
        (list(r#""a": {"x": {"w": "1"}}"#, r#"{"name": "{a}"}"#), "axis 'a': the word 'w' has no effect"),
        (list(a, r#"{"name": "{a}", "except": [{"a": []}]}"#), "{a}: condition 1 of 'except' has no effect"),
        (list(a, r#"{"name": "{a}", "also": [{"note": "1"}]}"#), "'also' lacks 'when'"),
        (list(a, r#"{"name": "n", "note": "{a}"}"#), "only a text in a list can name 'a'"),
        (list(a, r#"{"name": "{a"}"#), "lacks a closing brace"),
        (
            list(r#""a": {"x": {"w": "1"}, "y": {}}"#, r#"{"name": "{a.w}"}"#),
            "the value 'y' of 'a' lacks the word 'w'",
        ),
    ] {
        assert!(error.contains(part), "'{part}' is not in: {error}");
    }
}
