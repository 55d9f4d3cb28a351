//! Texts that follow schemas, and schemas that are refused.

use serde_json::{Value, json};

use super::{
    Schema, SchemaText,
    grammar::MOST_DEPTH,
    state::{INDENT, MOST_AHEAD},
};

fn is_whole(schema: &Schema, text: &str) -> Option<bool> {
    schema.begin().with(text.as_bytes()).map(|own| own.may_end())
}

fn schema(value: Value) -> Schema {
    Schema::read(&value).unwrap_or_else(|error| panic!("{value}: {error}"))
}

/// Checks which texts are whole, and that their beginnings are beginnings.
fn check(value: Value, right: &[&str], wrong: &[&str]) {
    let own = schema(value.clone());
    for text in right {
        assert_eq!(is_whole(&own, text), Some(true), "{value}: {text}");
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
        (0..text.len())
            .for_each(|end| assert!(own.begin().with(&text.as_bytes()[..end]).is_some(), "{text}"));
    }
    for text in wrong {
        assert_ne!(is_whole(&own, text), Some(true), "{value}: {text}");
    }
}

fn refused(value: Value, what: &str) {
    let told = Schema::read(&value).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(told.contains(what), "{value}: {told}");
}

#[test]
fn any_object_is_taken() {
    let own = Schema::object();
    for whole in [
        "{}",
        " {\n \"a\" : [1, -0.5e+3, true, null, {}, [ ]], \"ü\\u00e9\\n\": \"\\\\\" }",
        "{\"a\":{\"b\":[[0,10]]}}",
        "{\"😀\":\"\u{7ff}\u{d7ff}\u{10ffff}\"}",
    ] {
        assert_eq!(is_whole(&own, whole), Some(true), "{whole}");
        assert!(serde_json::from_str::<Value>(whole).is_ok(), "{whole}");
        for end in 0..whole.len() {
            let part = own.begin().with(&whole.as_bytes()[..end]);
            assert!(part.is_some_and(|part| !part.may_end()), "{whole}: {end}");
        }
    }
}

#[test]
fn what_is_no_object_is_not() {
    let own = Schema::object();
    for wrong in [
        "[",
        "1",
        "\"a\"",
        "{,",
        "{1",
        "{\"a\",",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":01",
        "{\"a\":1.}",
        "{\"a\":-}",
        "{\"a\":1e}",
        "{\"a\":1e100",
        "{\"a\":nul}",
        "{\"a\":[1,]",
        "{\"a\":[1}",
        "{\"a\":1]",
        "{\"a\n",
        "{\"\\x",
        "{\"\\ud8",
        "{\"\\uDf",
        "{}}",
        "{} ",
        "{}{",
    ] {
        assert_eq!(is_whole(&own, wrong), None, "{wrong}");
    }
    for wrong in [&b"{\"\xFF"[..], b"{\"\xC0", b"{\"\xE0\x80", b"{\"\xED\xA0", b"{\"\xF4\x90", b"{\"\xC3\""] {
        assert!(own.begin().with(wrong).is_none(), "{wrong:?}");
    }
    let deep = format!("{{\"a\":{}", "[".repeat(MOST_DEPTH as usize + 1));
    assert_eq!(is_whole(&own, &deep), None);
    assert!(is_whole(&own, &deep[..deep.len() - 1]).is_some());
    let spaced = |ahead: u8, within: &str| is_whole(&own, &format!("{}{{{within}", " ".repeat(ahead.into())));
    assert_eq!((spaced(MOST_AHEAD, ""), spaced(MOST_AHEAD + 1, "")), (Some(false), None));
    let line = format!(" \n{}", " ".repeat(INDENT as usize));
    for right in ["", " ", "\t", "\n", &line] {
        assert_eq!(spaced(0, right), Some(false), "{right:?}");
    }
    for wrong in ["  ", "\n\n", "\r\n", &format!("{line} ")] {
        assert_eq!(spaced(0, wrong), None, "{wrong:?}");
    }
}

#[test]
fn objects_have_their_properties_in_order() {
    let named = json!({"type": "object", "properties": {"a": {"type": "integer"}, "ab": {"type": "string"}, "é\"": {}},
                       "required": ["ab"]});
    check(
        named,
        &[r#"{"ab":"x"}"#, r#"{"a": 1, "ab": "x"}"#, r#"{"ab":"","é\"":[1]}"#],
        &[
            "{}",
            r#"{"a":1}"#,
            r#"{"ab":"x","a":1}"#,
            r#"{"ab":1}"#,
            r#"{"ab":"x","c":1}"#,
            r#"{"a":1,"a":2,"ab":"x"}"#,
        ],
    );
    let more = json!({"properties": {"a": {"type": "integer"}, "é": {"type": "null"}}, "additionalProperties": {"type": "boolean"}});
    check(
        more,
        &[
            "{}",
            r#"{"b":true}"#,
            r#"{"a":1,"ab":true}"#,
            r#"{"è":false}"#,
            r#"{"":true}"#,
            r#"{"é":null,"é2":true}"#,
        ],
        &[
            r#"{"a":true}"#,
            r#"{"b":1}"#,
            r#"{"b":true,"a":1}"#,
            r#"{"b":true,"a":true}"#,
            r#"{"\u0061":true}"#,
            r#"{"é":true}"#,
        ],
    );
    let split = schema(json!({"properties": {"é": {"type": "null"}}, "additionalProperties": true}));
    assert!(split.begin().with(b"{\"\xC3\"").is_none());
    check(json!({"type": "object", "required": ["x"]}), &[r#"{"x":[{}]}"#], &["{}", r#"{"y":1}"#]);
    check(json!({"type": "object", "additionalProperties": false}), &["{}"], &[r#"{"y":1}"#]);
}

#[test]
fn lists_texts_and_words_have_their_bounds() {
    check(
        json!({"type": "array", "items": {"type": "integer", "minimum": 1, "exclusiveMaximum": 13}, "minItems": 1, "maxItems": 3}),
        &["[1]", "[ 12, 1,3 ]"],
        &["[]", "[0]", "[13]", "[1,2,3,4]", "[1,]", "[1.0]"],
    );
    check(
        json!({"prefixItems": [{"type": "string"}, {"type": "null"}], "items": false, "minItems": 1}),
        &[r#"["a"]"#, r#"["a",null]"#],
        &["[]", "[null]", r#"["a",null,1]"#],
    );
    check(
        json!({"items": [{"const": 1}], "additionalItems": {"const": 2}}),
        &["[]", "[1]", "[1,2,2]"],
        &["[2]", "[1,1]"],
    );
    check(
        json!({"type": "string", "minLength": 1, "maxLength": 2}),
        &[r#""a""#, r#""é😀""#, r#""\u00e9\n""#],
        &[r#""""#, r#""abc""#],
    );
    check(
        json!({"enum": ["a", "ab", 1, 12, 120, null, {"x": [1]}, "\n"]}),
        &[r#""a""#, r#""ab""#, "1", "12", "120", "null", r#"{"x":[1]}"#, r#""\n""#],
        &[r#""b""#, "2", "121", "13", "nul", r#"{"x":[2]}"#],
    );
    check(json!({"items": {"enum": [1, 12]}}), &["[1,12]", "[12 ,1]"], &["[2]", "[121]"]);
    check(json!({"type": "number", "minimum": 0, "maximum": 1}), &["0.5", "0", "1.0"], &["1.5", "-1", "1e0"]);
    check(json!({"type": ["string", "null"], "maxLength": 1}), &["null", r#""a""#], &["1", r#""ab""#]);
    check(json!({"type": "integer", "enum": [1, "a"]}), &["1"], &[r#""a""#]);
    check(json!({"type": "string", "format": "date"}), &[r#""2026-02-28""#], &[r#""2026-02-30""#, r#""x""#]);
    check(json!(true), &["1", "[]", "\"x\"", "null"], &["nul"]);
}

#[test]
fn schemas_are_put_together_and_lead_to_themselves() {
    let tree = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {
            "value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        }, "required": ["value", "next"], "additionalProperties": false}},
    });
    check(
        tree,
        &[r#"{"value":1,"next":null}"#, r#"{"value":1,"next":{"value":2,"next":null}}"#],
        &[r#"{"value":1}"#, r#"{"value":1,"next":{}}"#],
    );
    check(
        json!({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                         {"properties": {"b": {"type": "string"}, "a": {"minimum": 3, "maximum": 4}}}], "type": "object"}),
        &[r#"{"a":3}"#, r#"{"a":4,"b":"x"}"#],
        &["{}", r#"{"a":5}"#, r#"{"b":"x"}"#],
    );
    check(
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
               "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        &[r#"{"a":1}"#, r#"{"b":1}"#, r#"{"a":1,"b":1}"#],
        &["{}"],
    );
    check(
        json!({"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind", "lives"]},
            {"type": "object", "properties": {"kind": {"const": "dog"}}, "required": ["kind"]}]}),
        &[r#"{"kind":"cat","lives":9}"#, r#"{"kind":"dog"}"#],
        &[r#"{"kind":"cat"}"#, r#"{"kind":"dog","lives":9}"#],
    );
    check(json!({"$defs": {"a b": {"type": "null"}}, "$ref": "#/$defs/a%20b"}), &["null"], &["1"]);
    check(
        json!({"properties": {"c": {"$ref": "#"}}, "type": "object"}),
        &["{}", r#"{"c":{"c":{}}}"#],
        &[r#"{"c":1}"#],
    );
}

#[test]
fn what_is_not_followed_is_named() {
    refused(json!({"not": {}}), "'not' is not supported");
    refused(json!({"properties": {"a": {"patternProperties": {}}}}), "'patternProperties'");
    refused(json!({"type": "array", "uniqueItems": true}), "'uniqueItems'");
    refused(json!({"type": "integer", "multipleOf": 2}), "'multipleOf'");
    refused(json!({"type": "string", "pattern": "(?=a)b"}), "'pattern'");
    refused(json!({"type": "string", "format": "color"}), "'color' is not supported; there are: date");
    refused(json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}), "'oneOf'");
    // What is written of the second is of the first, too, which allows others.
    refused(
        json!({"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}, "required": ["b"]}]}),
        "'oneOf'",
    );
    refused(json!({"$ref": "https://example.com/x"}), "'$ref'");
    refused(json!({"$ref": "#/nothing"}), "leads to nothing");
    refused(
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        "leads to itself",
    );
    refused(json!({"type": "text"}), "'type' is \"text\"");
    refused(json!(3), "3 is no schema");
    refused(json!({"type": "object", "minProperties": 1}), "'minProperties'");
}

#[test]
fn schemas_that_nothing_follows_are_refused() {
    let nothing = "follows it";
    refused(json!(false), nothing);
    refused(json!({"enum": []}), nothing);
    refused(json!({"type": "integer", "minimum": 3, "maximum": 2}), nothing);
    refused(json!({"type": "array", "items": false, "minItems": 1}), nothing);
    refused(json!({"type": "object", "required": ["a"], "additionalProperties": false}), nothing);
    refused(json!({"properties": {"a": {"$ref": "#"}}, "required": ["a"], "type": "object"}), nothing);
    refused(json!({"allOf": [{"type": "string"}, {"type": "integer"}]}), nothing);
    // What may be left out is.
    check(
        json!({"properties": {"a": false, "b": {"type": "null"}}}),
        &["{}", r#"{"b":null}"#],
        &[r#"{"a":1}"#],
    );
}

/// Deep, wide and crooked schemas end in time, without a stack that is too small.
#[test]
fn hostile_schemas_are_refused_or_read() {
    let mut chain = serde_json::Map::new();
    for place in 0..3000 {
        chain.insert(
            place.to_string(),
            json!({"properties": {"a": {"$ref": format!("#/$defs/{}", place + 1)}}, "required": ["a"]}),
        );
    }
    chain.insert("3000".to_owned(), json!({"type": "null"}));
    refused(json!({"$defs": chain, "$ref": "#/$defs/0"}), "follows it");
    let wide: Vec<Value> = (0..500).map(|place| json!({"type": "string", "maxLength": place})).collect();
    refused(json!({"anyOf": wide}), "more than 128");
    refused(json!({"enum": vec!["x".repeat(1000); 600]}), "bytes");
    // Each of these doubles.
    let double = |own: &str| json!({"allOf": [{"properties": {"a": {"$ref": own}}}, {"properties": {"a": {"allOf": [{"$ref": own}, {"required": ["a"]}]}}}]});
    _ = Schema::read(&json!({"$defs": {"x": double("#/$defs/x")}, "$ref": "#/$defs/x"}));
    let mut deep = json!({"type": "null"});
    (0..100).for_each(|_| deep = json!({"allOf": [deep.take(), {"type": "null"}]}));
    refused(deep, "put together");
    let many = (0..100).map(|_| json!({"type": "array", "items": {"$ref": "#"}})).collect::<Vec<_>>();
    let own = schema(json!({"anyOf": many}));
    assert!(is_whole(&own, "[[[[[[[[[[]]]]]]]]]]").is_some());
}

/// Whatever is drawn of bytes that may come next can go on, and is in the end a value that others read.
#[test]
fn drawn_texts_go_on_to_an_end() {
    let mut random = 7u64;
    let mut next = move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let schemas = [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": {"type": "number", "minimum": -3, "maximum": 20}, "b": {"enum": ["x", "xy", 1]}},
               "required": ["b"], "additionalProperties": {"type": "string", "maxLength": 2}}),
        json!({"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 95, "maximum": 120}, {"type": "string", "pattern": "^[a-c]+x$"}, {"$ref": "#"}]},
               "minItems": 2, "maxItems": 3}),
    ];
    let liked = b"{}[]\",:\\u0dD19aeE+-.tfn \xC3\xA9\xED\x9F\xBF\xF4\x8Fabx";
    for value in schemas {
        let (own, mut whole) = (schema(value.clone()), 0);
        for _ in 0..4000 {
            let (mut text, mut bytes) = (own.begin(), Vec::new());
            while bytes.len() < 60 && !ends(&text) {
                let byte = if next(3) == 0 { next(256) as u8 } else { liked[next(liked.len())] };
                if let Some(longer) = text.with(&[byte]) {
                    text = longer;
                    bytes.push(byte);
                    assert!(goes_on(&text), "{value}: {:?}", String::from_utf8_lossy(&bytes));
                }
            }
            if text.may_end() {
                whole += 1;
                let read = serde_json::from_slice::<Value>(&bytes);
                assert!(read.is_ok(), "{:?}", String::from_utf8_lossy(&bytes));
            }
        }
        assert!(whole > 100, "{value}: {whole}");
    }
}

fn ends(text: &SchemaText) -> bool {
    text.may_end() && !takes_more(text)
}

fn goes_on(text: &SchemaText) -> bool {
    text.may_end() || takes_more(text)
}

fn takes_more(text: &SchemaText) -> bool {
    (0..=255u8).any(|byte| text.with(&[byte]).is_some())
}
