//! Reads a list: its axes with their values, its entries with their conditions. Names are looked up here, once.

use serde_json::{Map, Value};

use super::{ExpandError, Schema, item, node::Node};

/// What a value of an axis, an entry or an exception sets.
pub(super) type Fields = Map<String, Value>;

/// A list as it was read.
pub(super) struct List {
    pub(super) axes: Vec<Axis>,
    pub(super) entries: Vec<Entry>,
}

/// An axis.
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) values: Vec<AxisValue>,
    /// Names of all words, and whether a text uses them.
    pub(super) words: Vec<(String, bool)>,
    used: bool,
}

/// A value of an axis.
pub(super) struct AxisValue {
    pub(super) text: String,
    /// Beside the axis's names of words.
    pub(super) words: Vec<Option<String>>,
    pub(super) fields: Fields,
    pub(super) used: bool,
}

/// Axes with the values of each that are meant.
pub(super) struct Condition {
    axes: Vec<(usize, Vec<usize>)>,
    held: bool,
}

/// What stands for one item for each combination of its axes.
pub(super) struct Entry {
    pub(super) name: String,
    /// The axes that the name names, the outermost loop first.
    pub(super) axes: Vec<usize>,
    pub(super) fields: Fields,
    only: Vec<Condition>,
    except: Vec<Condition>,
    pub(super) also: Vec<(Condition, Fields)>,
}

impl Condition {
    /// Whether it holds for a combination: axes and their values.
    pub(super) fn holds(&mut self, axes: &[usize], at: &[usize]) -> bool {
        let value = |axis: usize| axes.iter().position(|own| *own == axis).map(|place| at[place]);
        let holds = self.axes.iter().all(|(axis, values)| value(*axis).is_some_and(|v| values.contains(&v)));
        self.held |= holds;
        holds
    }
}

impl Entry {
    /// Whether a combination counts.
    pub(super) fn counts(&mut self, at: &[usize]) -> bool {
        // Each is asked, so that each is known to hold somewhere.
        let any = |conditions: &mut Vec<Condition>| {
            conditions.iter_mut().fold(false, |any, condition| condition.holds(&self.axes, at) | any)
        };
        let (only, except) = (any(&mut self.only), any(&mut self.except));
        (only || self.only.is_empty()) && !except
    }

    /// Refuses conditions that never held.
    pub(super) fn all_used(&self) -> Result<(), ExpandError> {
        let idle = |key: &str, place: Option<usize>| match place {
            Some(place) => Err(ExpandError::Idle {
                place: self.name.clone(),
                what: format!("condition {} of '{key}'", place + 1),
            }),
            None => Ok(()),
        };
        idle("only", self.only.iter().position(|condition| !condition.held))?;
        idle("except", self.except.iter().position(|condition| !condition.held))?;
        idle("also", self.also.iter().position(|(condition, _)| !condition.held))
    }
}

impl List {
    pub(super) fn read(text: &str, schema: &Schema) -> Result<List, ExpandError> {
        let place = schema.list;
        let mut list = List { axes: Vec::new(), entries: Vec::new() };
        let mut entries = Vec::new();
        for (key, node) in object(place, serde_json::from_str(text)?)? {
            match key.as_str() {
                "axes" => {
                    for (name, values) in object("axes", node)? {
                        list.axes.push(Axis::read(name, values, schema)?);
                    }
                }
                key if key == schema.list => entries = items(place, node)?,
                key => {
                    let known = ["axes", schema.list];
                    return Err(ExpandError::unknown(place, "key", key, known.into_iter()));
                }
            }
        }
        for entry in entries {
            let entry = list.entry(entry, schema)?;
            list.entries.push(entry);
        }
        Ok(list)
    }

    fn entry(&mut self, node: Node, schema: &Schema) -> Result<Entry, ExpandError> {
        let mut fields = object(schema.list, node)?;
        let name = fields.iter().find(|(key, _)| key == "name").and_then(|(_, name)| name.text());
        let name =
            name.ok_or_else(|| ExpandError::form(schema.list, "an entry has no text 'name'"))?.to_owned();
        let mut axes = Vec::new();
        for axis in item::named(&name, &name)? {
            let axis = self.axis(&name, axis)?;
            if !axes.contains(&axis) {
                axes.push(axis);
            }
            self.axes[axis].used = true;
        }
        let mut entry =
            Entry { name, axes, fields: Fields::new(), only: vec![], except: vec![], also: vec![] };
        for (key, node) in fields.drain(..) {
            match key.as_str() {
                "only" => entry.only = self.conditions(&entry, node)?,
                "except" => entry.except = self.conditions(&entry, node)?,
                "also" => entry.also = self.also(&entry, node, schema)?,
                key if schema.fields.contains(&key) => {
                    entry.fields.insert(key.to_owned(), node.into_value());
                }
                key => {
                    let known = schema.fields.iter().copied().chain(["only", "except", "also"]);
                    return Err(ExpandError::unknown(&entry.name, "key", key, known));
                }
            }
        }
        Ok(entry)
    }

    fn also(
        &self,
        entry: &Entry,
        node: Node,
        schema: &Schema,
    ) -> Result<Vec<(Condition, Fields)>, ExpandError> {
        let mut also = Vec::new();
        for node in items(&entry.name, node)? {
            let (mut when, mut fields) = (None, Fields::new());
            for (key, node) in object(&entry.name, node)? {
                match key.as_str() {
                    "when" => when = Some(self.condition(entry, node)?),
                    key if key != "name" && schema.fields.contains(&key) => {
                        fields.insert(key.to_owned(), node.into_value());
                    }
                    key => {
                        let known = schema.fields.iter().copied().filter(|f| *f != "name").chain(["when"]);
                        return Err(ExpandError::unknown(&entry.name, "key of 'also'", key, known));
                    }
                }
            }
            let when = when.ok_or_else(|| ExpandError::form(&entry.name, "'also' lacks 'when'"))?;
            also.push((when, fields));
        }
        Ok(also)
    }

    fn conditions(&self, entry: &Entry, node: Node) -> Result<Vec<Condition>, ExpandError> {
        items(&entry.name, node)?.into_iter().map(|node| self.condition(entry, node)).collect()
    }

    fn condition(&self, entry: &Entry, node: Node) -> Result<Condition, ExpandError> {
        let place = &entry.name;
        let mut axes = Vec::new();
        for (name, values) in object(place, node)? {
            let axis =
                entry.axes.iter().copied().find(|axis| self.axes[*axis].name == name).ok_or_else(|| {
                    let known = entry.axes.iter().map(|axis| self.axes[*axis].name.as_str());
                    ExpandError::unknown(place, "axis of the name", &name, known)
                })?;
            let texts = match values {
                Node::List(list) => list,
                one => vec![one],
            };
            let mut meant = Vec::new();
            for text in &texts {
                let text =
                    text.text().ok_or_else(|| ExpandError::form(place, "a condition compares with text"))?;
                meant.push(self.axes[axis].value(place, text)?);
            }
            axes.push((axis, meant));
        }
        Ok(Condition { axes, held: false })
    }

    /// An axis by its name.
    pub(super) fn axis(&self, place: &str, name: &str) -> Result<usize, ExpandError> {
        self.axes.iter().position(|axis| axis.name == name).ok_or_else(|| {
            ExpandError::unknown(place, "axis", name, self.axes.iter().map(|axis| axis.name.as_str()))
        })
    }

    /// The next combination of an entry's axes, the last one fastest; `false` after the last.
    pub(super) fn advance(&self, entry: &Entry, at: &mut [usize]) -> bool {
        for (place, axis) in entry.axes.iter().enumerate().rev() {
            at[place] += 1;
            if at[place] < self.axes[*axis].values.len() {
                return true;
            }
            at[place] = 0;
        }
        false
    }

    /// Refuses axes, values and words that no entry uses.
    pub(super) fn all_used(&self) -> Result<(), ExpandError> {
        for axis in &self.axes {
            let idle = |what: String| Err(ExpandError::Idle { place: format!("axis '{}'", axis.name), what });
            if !axis.used {
                return idle("the axis".to_owned());
            }
            if let Some(value) = axis.values.iter().find(|value| !value.used) {
                return idle(format!("the value '{}'", value.text));
            }
            if let Some((word, _)) = axis.words.iter().find(|(_, used)| !used) {
                return idle(format!("the word '{word}'"));
            }
        }
        Ok(())
    }

    /// Marks an axis as one that a text names.
    pub(super) fn mark(&mut self, axis: usize) {
        self.axes[axis].used = true;
    }
}

impl Axis {
    fn read(name: String, node: Node, schema: &Schema) -> Result<Axis, ExpandError> {
        let place = format!("axis '{name}'");
        let values = match node {
            Node::Object(values) => values,
            Node::List(texts) => {
                let value = |node: Node| match node.text() {
                    Some(text) => Ok((text.to_owned(), Node::Object(Vec::new()))),
                    None => Err(ExpandError::form(&place, "a list of values has texts")),
                };
                texts.into_iter().map(value).collect::<Result<_, _>>()?
            }
            Node::Plain(_) => return Err(ExpandError::form(&place, "has values as a list or an object")),
        };
        let mut axis = Axis { name, values: Vec::new(), words: Vec::new(), used: false };
        for (text, node) in values {
            if axis.values.iter().any(|value| value.text == text) {
                return Err(ExpandError::form(&place, format!("the value '{text}' is there twice")));
            }
            axis.add(&place, text, node, schema)?;
        }
        Ok(axis)
    }

    fn add(&mut self, place: &str, text: String, node: Node, schema: &Schema) -> Result<(), ExpandError> {
        let mut value =
            AxisValue { text, words: vec![None; self.words.len()], fields: Fields::new(), used: false };
        for (key, node) in object(place, node)? {
            if key != "name" && schema.fields.contains(&key.as_str()) {
                value.fields.insert(key, node.into_value());
                continue;
            }
            let Some(word) = node.text() else {
                let known = schema.fields.iter().copied().filter(|field| *field != "name");
                return Err(ExpandError::unknown(place, "field (words are texts)", &key, known));
            };
            let index = self.words.iter().position(|(word, _)| *word == key).unwrap_or_else(|| {
                self.words.push((key, false));
                self.values.iter_mut().for_each(|value| value.words.push(None));
                value.words.push(None);
                self.words.len() - 1
            });
            value.words[index] = Some(word.to_owned());
        }
        self.values.push(value);
        Ok(())
    }

    fn value(&self, place: &str, text: &str) -> Result<usize, ExpandError> {
        self.values.iter().position(|value| value.text == text).ok_or_else(|| {
            let known = self.values.iter().map(|value| value.text.as_str());
            ExpandError::unknown(place, format!("value of '{}'", self.name), text, known)
        })
    }
}

fn object(place: &str, node: Node) -> Result<Vec<(String, Node)>, ExpandError> {
    match node {
        Node::Object(fields) => Ok(fields),
        _ => Err(ExpandError::form(place, "an object belongs here")),
    }
}

fn items(place: &str, node: Node) -> Result<Vec<Node>, ExpandError> {
    match node {
        Node::List(items) => Ok(items),
        _ => Err(ExpandError::form(place, "a list belongs here")),
    }
}
