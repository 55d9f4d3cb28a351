//! Reader and builder against each other and against hand-made bytes.

use super::*;

const ID: &[u8; 4] = b"TEST";
const NUMBER: Field<u32> = Field { table: "T", name: "number", id: 0, default: 7 };
const WIDE: Field<u64> = Field { table: "T", name: "wide", id: 2, default: 0 };
const TEXT: Field<Text> = Field { table: "T", name: "text", id: 3, default: Text };
const CHILD: Field<Child> = Field { table: "T", name: "child", id: 4, default: Child };
const CHILDREN: Field<Vector<Child>> = Field { table: "T", name: "children", id: 5, default: Vector::ZERO };
const NUMBERS: Field<Vector<i32>> = Field { table: "T", name: "numbers", id: 6, default: Vector::ZERO };
const TEXTS: Field<Vector<Text>> = Field { table: "T", name: "texts", id: 7, default: Vector::ZERO };
const BYTES: Field<Vector<u8>> = Field { table: "T", name: "bytes", id: 8, default: Vector::ZERO };

fn sample(size_prefix: bool) -> Vec<u8> {
    let mut b = Builder::new();
    let text = b.text("grüß");
    let leaf = b.table().scalar(&NUMBER, 1).link(&TEXT, text).finish();
    let other = b.table().scalar(&NUMBER, 2).link(&TEXT, text).finish();
    let children = b.children(&[leaf, other, leaf]);
    let numbers = b.scalars([-1, 0, 1]);
    let bytes = b.bytes(&[5; 3], 16);
    let root = b
        .table()
        .scalar(&WIDE, u64::MAX)
        .link(&CHILD, other)
        .link(&CHILDREN, children)
        .link(&NUMBERS, numbers)
        .link(&BYTES, bytes)
        .finish();
    b.finish(root, ID, size_prefix).unwrap()
}

#[test]
fn what_is_built_reads_back() {
    let file = sample(false);
    let reader = Reader::new(&file, 0);
    let root = reader.root("T", ID).unwrap();
    assert_eq!(root.scalar(&NUMBER).unwrap(), 7, "the default");
    assert_eq!(root.scalar(&WIDE).unwrap(), u64::MAX);
    assert_eq!(root.text(&TEXT).unwrap(), None);
    assert_eq!(root.child(&CHILD).unwrap().unwrap().text(&TEXT).unwrap(), Some("grüß"));
    let children = root.vector(&CHILDREN).unwrap();
    let numbers: Vec<u32> = children.iter().map(|c| c.unwrap().scalar(&NUMBER).unwrap()).collect();
    assert_eq!(numbers, [1, 2, 1]);
    let numbers: Vec<i32> = root.vector(&NUMBERS).unwrap().iter().map(Result::unwrap).collect();
    assert_eq!(numbers, [-1, 0, 1]);
    assert!(root.vector(&TEXTS).unwrap().is_empty());
    let range = root.range(&BYTES).unwrap().unwrap();
    assert_eq!(&file[range.clone()], [5; 3]);
    assert_eq!(range.start % 16, 0);
    let error = children.get(3).unwrap_err();
    assert_eq!(error.to_string(), "T.children[3] asked for, but it has 3 elements");
}

#[test]
fn size_prefix_counts_for_alignment() {
    let file = sample(true);
    assert_eq!(file[..4], (file.len() as u32 - 4).to_le_bytes());
    let reader = Reader::new(&file[4..], 4);
    let root = reader.root("T", ID).unwrap();
    assert_eq!((root.range(&BYTES).unwrap().unwrap().start + 4) % 16, 0);
    assert_eq!(root.scalar(&WIDE).unwrap(), u64::MAX);
}

#[test]
fn equal_vtables_and_strings_are_stored_once() {
    let build = |tables: usize| {
        let mut b = Builder::new();
        let tables: Vec<_> = (0..tables)
            .map(|i| {
                let text = b.text("a text of twenty-odd bytes");
                b.table().scalar(&NUMBER, i as u32 + 100).link(&TEXT, text).finish()
            })
            .collect();
        let children = b.children(&tables);
        let root = b.table().link(&CHILDREN, children).finish();
        b.finish(root, ID, false).unwrap().len()
    };
    // Each further table: twelve bytes of its own, four in the vector.
    assert_eq!(build(11) - build(1), 10 * 16);
}

/// Header, root table at 16 whose only field is `TEXT`, vtable at 24.
fn hand_made(field: u32) -> Vec<u8> {
    let mut file = vec![16, 0, 0, 0];
    file.extend_from_slice(ID);
    file.extend_from_slice(&[0; 8]);
    file.extend_from_slice(&(-8i32).to_le_bytes());
    file.extend_from_slice(&field.to_le_bytes());
    for v in [12u16, 8, 0, 0, 0, 4] {
        file.extend_from_slice(&v.to_le_bytes());
    }
    file
}

fn text_of(file: &[u8]) -> Result<Option<String>, FlatbufferError> {
    let reader = Reader::new(file, 100);
    Ok(reader.root("T", ID)?.text(&TEXT)?.map(str::to_owned))
}

#[test]
fn errors_name_field_offset_and_limit() {
    let error = |file: &[u8]| text_of(file).unwrap_err().to_string();
    assert_eq!(
        error(&hand_made(1000)),
        "T.text: 4 bytes at offset 1120 end past the limit 136; the file is damaged or cut short"
    );
    assert_eq!(
        error(&hand_made(3)),
        "T.text: offset 123 is not a multiple of 4 from the buffer start; the file is damaged"
    );
    let with_text = |length: u32, bytes: &[u8]| {
        let mut file = hand_made(16);
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(bytes);
        file
    };
    assert_eq!(text_of(&with_text(2, b"ab\0")).unwrap().as_deref(), Some("ab"));
    assert_eq!(
        error(&with_text(2, b"abc")),
        "T.text: string of 2 bytes at offset 140 is not zero-terminated"
    );
    assert_eq!(
        error(&with_text(2, b"a\xFF\0")),
        "T.text: string of 2 bytes at offset 140 is not UTF-8 from its byte 1 on"
    );
    assert!(
        error(&with_text(u32::MAX, b"ab\0"))
            .contains("4294967295 bytes at offset 140 end past the limit 143")
    );
    let mut other = hand_made(16);
    other[4..8].copy_from_slice(b"NOPE");
    assert_eq!(error(&other), "FlatBuffer identifier at offset 104 is \"NOPE\", expected \"TEST\"");
    let mut vtable = hand_made(16);
    vtable[24] = 3;
    assert_eq!(
        error(&vtable),
        "T.root: table at offset 116 has vtable length 3 and table length 8; both must be at least 4 and the former even"
    );
    let mut table = hand_made(16);
    table[34] = 18;
    assert_eq!(
        error(&table),
        "T.text: 4 bytes at offset 134 end past the limit 136; the file is damaged or cut short"
    );
}

#[test]
fn shared_offsets_exhaust_the_budget() {
    // A vector whose thousands of elements are one table with a long string: quadratic if followed blindly.
    let mut b = Builder::new();
    let text = b.text(&"x".repeat(8000));
    let leaf = b.table().link(&TEXT, text).finish();
    let children = b.children(&vec![leaf; 4000]);
    let root = b.table().link(&CHILDREN, children).finish();
    let file = b.finish(root, ID, false).unwrap();
    let reader = Reader::new(&file, 0);
    let children = reader.root("T", ID).unwrap().vector(&CHILDREN).unwrap();
    let read = children.iter().map(|c| c?.text(&TEXT).map(|t| t.map_or(0, str::len)));
    let total: Result<Vec<usize>, FlatbufferError> = read.collect();
    let error = total.unwrap_err().to_string();
    assert!(error.starts_with("T.text: decoding would take more than"), "{error}");
}

#[test]
fn deep_nesting_is_refused() {
    let mut b = Builder::new();
    let mut table = b.table().finish();
    for _ in 0..100 {
        table = b.table().link(&CHILD, table).finish();
    }
    let file = b.finish(table, ID, false).unwrap();
    let reader = Reader::new(&file, 0);
    let mut table = reader.root("T", ID).unwrap();
    let mut steps = 0;
    let error = loop {
        match table.child(&CHILD) {
            Ok(next) => table = next.unwrap(),
            Err(e) => break e,
        }
        steps += 1;
    };
    assert_eq!((steps, error.to_string().as_str()), (64, "T.child: tables are nested deeper than 64"));
}

#[test]
fn tables_of_python_share_vtables_of_other_lengths() {
    // A vtable with one field, of a table of 8 bytes; and a table that has 8 bytes in that field.
    let mut file = 12u32.to_le_bytes().to_vec();
    file.extend([6, 0, 8, 0, 4, 0, 0, 0]);
    file.extend(8i32.to_le_bytes());
    file.extend(9u64.to_le_bytes());
    let field: Field<u64> = Field { table: "T", name: "wide", id: 0, default: 0 };
    let reader = Reader::new(&file, 0);
    assert_eq!(reader.root_unnamed("T").unwrap().scalar(&field), Ok(9));
    let reader = Reader::new(&file[..20], 0);
    assert!(reader.root_unnamed("T").unwrap().scalar(&field).is_err(), "the buffer's end counts");
}
