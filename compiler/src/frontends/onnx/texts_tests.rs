//! Texts that models hold: labels that are looked up, which graphs have as places.

use halite_ops::Values;

use super::{
    Model,
    encode::{FLOAT, INT64, Message, graph, int, ints, model, node, port, tensor, text, texts, value},
};
use crate::{CompileError, graph::Graph, signature::Bindings};

/// The number of ONNX for texts.
const STRING: i64 = 8;

/// A list of texts.
fn names(name: &str, all: &[&str]) -> Message {
    let message = Message::default().varint(1, all.len() as i64).varint(2, STRING).bytes(8, name);
    all.iter().fold(message, |message, text| message.bytes(6, text))
}

/// A model of these nodes from `x`, three places, to `y`, with two lists of texts.
fn made(nodes: &[Message], y: Message) -> Result<Graph, CompileError> {
    let constants = [names("classes", &["cat", "dog", "cow"]), names("others", &["ox", "emu"])];
    let bytes = model(&graph(nodes, &constants, &[port("x", INT64, &[3])], &[y]), &[]);
    Model::from_bytes(bytes).unwrap().graph(&Bindings::default())
}

fn places(graph: &Graph) -> Values {
    graph.evaluate(&[Values::Int(vec![2, 0, 1])]).unwrap().remove(0)
}

#[test]
fn labels_that_are_looked_up_are_their_places() {
    let looked_up = node("ai.onnx.ml:ArrayFeatureExtractor", &["classes", "x"], &["l"], &[]);
    let shape = tensor("s", INT64, &[1], &(-1i64).to_le_bytes());
    let nodes = [
        looked_up,
        node("Constant", &[], &["s"], &[value("value", &shape)]),
        node("Reshape", &["l", "s"], &["r"], &[]),
        node("Cast", &["r"], &["y"], &[int("to", STRING)]),
    ];
    assert_eq!(places(&made(&nodes, port("y", STRING, &[3])).unwrap()), Values::Int(vec![2, 0, 1]));
    let given = node("Constant", &[], &["own"], &[value("value", &names("", &["b", "a", "c"]))]);
    let nodes = [given, node("Gather", &["own", "x"], &["y"], &[])];
    assert_eq!(places(&made(&nodes, port("y", STRING, &[3])).unwrap()), Values::Int(vec![2, 0, 1]));
}

#[test]
fn texts_are_not_taken_for_numbers() {
    let refused = |nodes: &[Message], y: Message| made(nodes, y).unwrap_err().to_string();
    let looked_up = node("Gather", &["classes", "x"], &["l"], &[]);
    let number = node("Cast", &["l"], &["y"], &[int("to", INT64)]);
    let error = refused(&[looked_up.clone(), number], port("y", INT64, &[3]));
    assert!(error.contains("a conversion of texts to numbers"), "{error}");
    let like = node("CastLike", &["l", "x"], &["y"], &[]);
    let error = refused(&[looked_up, like], port("y", INT64, &[3]));
    assert!(error.contains("a conversion of texts to numbers"), "{error}");
    for nodes in [
        [node("Concat", &["classes", "others"], &["y"], &[int("axis", 0)])],
        [node("Equal", &["classes", "others"], &["y"], &[])],
        [node("Gather", &["x", "classes"], &["y"], &[])],
    ] {
        let error = refused(&nodes, port("y", STRING, &[5]));
        assert!(
            error.contains("of elements of type STRING is not supported; devices hold numbers"),
            "{error}"
        );
    }
}

#[test]
fn inputs_of_texts_are_refused_before_sizes_are_asked_for() {
    use crate::frontends::SourceModel;
    let taken = |inputs: &[Message]| {
        let y = port("y", INT64, &[3]);
        let nodes = [node("Identity", &["n"], &["y"], &[])];
        let bytes = model(&graph(&nodes, &[], inputs, &[y]), &[]);
        Model::from_bytes(bytes).unwrap().takes_tensors("main")
    };
    taken(&[port("n", INT64, &[3])]).unwrap();
    let error = taken(&[port("n", INT64, &[3]), port("words", STRING, &[3])]).unwrap_err().to_string();
    for part in ["the input 'words' has elements of type STRING", "before the call", "halite.onnxruntime"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn encoded_labels_that_are_texts_are_places_too() {
    let list = [
        ints("keys_int64s", &[2, 0]),
        texts("values_strings", &["two", "none"]),
        text("default_string", "?"),
    ];
    let graph =
        made(&[node("ai.onnx.ml:LabelEncoder", &["x"], &["y"], &list)], port("y", STRING, &[3])).unwrap();
    assert_eq!(places(&graph), Values::Int(vec![0, 1, 2]), "the last is that of the default");
    let list = [texts("keys_strings", &["a"]), ints("values_int64s", &[1])];
    let nodes = [node("ai.onnx.ml:LabelEncoder", &["x"], &["y"], &list)];
    assert!(made(&nodes, port("y", FLOAT, &[3])).is_err());
}
