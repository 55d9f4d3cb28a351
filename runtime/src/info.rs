//! The facts about functions that modules tell: what they take and return, and how they are called.

use halite_abi::{Result, ResultExt, attribute, export, status};
use halite_formats::vmfb::FunctionSignature;
use halite_vm::{Kind, Signature};

use crate::declaration::{Declaration, Field, TypeInfo};

/// Facts about an exported function.
#[derive(Clone, Debug)]
pub struct FunctionInfo {
    /// Name of the module.
    pub module: String,
    /// Name within the module.
    pub name: String,
    /// Calling convention, such as `0rr_r`.
    pub calling_convention: String,
    /// Source signature as the compiler wrote it, if it did.
    pub declaration: Option<String>,
    /// Whether the function returns before its work is done and signals a fence (`coarse-fences`).
    pub is_async: bool,
    inputs: Vec<Kind>,
    outputs: Vec<Kind>,
    input_names: Vec<String>,
    output_names: Vec<String>,
    parsed: Option<Declaration>,
    launch: Option<Launch>,
    states: Vec<(usize, usize)>,
}

/// How a function is called so that the call returns before its work is done.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// Name of the function in its module that takes fences: the function itself, or its sibling.
    pub name: String,
    /// Whether any number of calls may be under way at one time: the module says that they share nothing that they write.
    pub independent: bool,
    /// Whether the module has a function that makes recordings for calls to come.
    pub records: bool,
}

impl Launch {
    fn of(name: &str, signature: &FunctionSignature) -> Self {
        let independent = signature.attr(attribute::CALLS) == Some(attribute::INDEPENDENT);
        Launch { name: name.to_owned(), independent, records: false }
    }
}

impl FunctionInfo {
    /// Facts about the function `name`, out of its signature and that of its asynchronous sibling, if the module has one.
    pub(crate) fn new(
        module: &str,
        name: &str,
        signature: &FunctionSignature,
        sibling: Option<(&str, &FunctionSignature)>,
    ) -> Result<Self> {
        let declaration = signature.attr(attribute::DECLARATION).map(str::to_owned);
        let parsed = declaration.as_deref().and_then(Declaration::parse);
        let is_async = is_async(signature);
        let convention = Signature::parse(&signature.calling_convention)
            .context(|| format!("reading the signature of '{module}.{name}'"))?;
        if convention.is_variadic() || (is_async && convention.args.len() < export::FENCES) {
            return Err(status!(
                InvalidArgument,
                "exported function '{module}.{name}' cannot have the signature '{}'",
                signature.calling_convention
            ));
        }
        let sibling = sibling.filter(|(_, sibling)| !is_async && launches(sibling, &convention));
        let launch = if is_async { Some((name, signature)) } else { sibling };
        let launch = launch.map(|(name, signature)| Launch::of(name, signature));
        let fences = if is_async { export::FENCES } else { 0 };
        let inputs: Vec<Kind> = convention.plain_args().take(convention.args.len() - fences).collect();
        let outputs = convention.results;
        let all = [Some(signature), sibling.map(|(_, signature)| signature)];
        let listed = |names: fn(&FunctionSignature) -> Option<Vec<String>>| {
            all.into_iter().flatten().filter_map(names)
        };
        let fields = |of: fn(&Declaration) -> &Vec<Field>| parsed.as_ref().map(of);
        let mut info = FunctionInfo {
            module: module.to_owned(),
            name: name.to_owned(),
            calling_convention: signature.calling_convention.clone(),
            is_async,
            input_names: names(listed(FunctionSignature::input_names), fields(|d| &d.inputs), inputs.len()),
            output_names: names(
                listed(FunctionSignature::output_names),
                fields(|d| &d.outputs),
                outputs.len(),
            ),
            inputs,
            outputs,
            declaration,
            parsed,
            launch,
            states: Vec::new(),
        };
        info.states = states(all.into_iter().flatten(), &info);
        Ok(info)
    }

    /// The inputs whose buffers a call writes, and the outputs that are in them afterwards, by their places. What is handed in for
    /// them must not be needed otherwise.
    pub fn states(&self) -> &[(usize, usize)] {
        &self.states
    }

    /// `module.name`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.module, self.name)
    }

    /// How each argument of a call is passed. The fences of asynchronous functions are not among them.
    pub fn input_kinds(&self) -> &[Kind] {
        &self.inputs
    }

    /// How each result is passed.
    pub fn output_kinds(&self) -> &[Kind] {
        &self.outputs
    }

    /// Name of input `index`, as the model has it; `None` where the module does not tell.
    pub fn input_name(&self, index: usize) -> Option<&str> {
        self.input_names.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Name of output `index`, as the model has it; `None` where the module does not tell.
    pub fn output_name(&self, index: usize) -> Option<&str> {
        self.output_names.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Whether a call can return before its work is done ([`crate::Function::start`]).
    pub fn can_overlap(&self) -> bool {
        self.launch.is_some()
    }

    /// Whether [`crate::Function::record`] makes recordings for calls to come.
    pub fn can_record(&self) -> bool {
        self.launch.as_ref().is_some_and(|launch| launch.records)
    }

    /// Whether the module says that its calls share nothing that they write.
    pub fn is_independent(&self) -> bool {
        self.launch.as_ref().is_some_and(|launch| launch.independent)
    }

    /// The same function, which the module can make recordings of.
    pub(crate) fn recorded(self, records: bool) -> Self {
        let launch = self.launch.map(|launch| Launch { records, ..launch });
        FunctionInfo { launch, ..self }
    }

    pub(crate) fn launch(&self) -> Option<&Launch> {
        self.launch.as_ref()
    }

    /// Source type of input `index`, when the declaration tells.
    pub fn input_type(&self, index: usize) -> Option<&TypeInfo> {
        self.parsed.as_ref().and_then(|d| d.inputs.get(index)).map(|field| &field.ty)
    }

    /// Source type of output `index`, when the declaration tells.
    pub fn output_type(&self, index: usize) -> Option<&TypeInfo> {
        self.parsed.as_ref().and_then(|d| d.outputs.get(index)).map(|field| &field.ty)
    }

    /// The declaration, or the calling convention where there is none.
    pub fn describe(&self) -> &str {
        self.declaration.as_deref().unwrap_or(&self.calling_convention)
    }

    /// The same for error messages: of a long one, such as that of a decoder with all its caches, beginning and end.
    pub(crate) fn brief(&self) -> String {
        shortened(self.describe())
    }
}

/// Most characters of a declaration that a message shows.
const MOST_SHOWN: usize = 400;

fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= MOST_SHOWN {
        return text.to_owned();
    }
    let first: String = text.chars().take(MOST_SHOWN / 2).collect();
    let last: String = text.chars().skip(count - MOST_SHOWN / 2).collect();
    format!("{first} … {last}")
}

fn is_async(signature: &FunctionSignature) -> bool {
    signature.attr(attribute::CALL_MODEL) == Some(attribute::COARSE_FENCES)
}

/// Whether a function does what one of this convention does, but takes fences.
fn launches(sibling: &FunctionSignature, convention: &Signature) -> bool {
    let Ok(with_fences) = Signature::parse(&sibling.calling_convention) else { return false };
    let fences = with_fences.args.len().checked_sub(export::FENCES);
    is_async(sibling)
        && !with_fences.is_variadic()
        && fences == Some(convention.args.len())
        && with_fences.args.starts_with(&convention.args)
        && with_fences.plain_args().skip(convention.args.len()).all(|kind| kind == Kind::Ref)
        && with_fences.results == convention.results
}

/// The states of a function, from the first signature that names any.
fn states<'a>(
    mut signatures: impl Iterator<Item = &'a FunctionSignature>,
    info: &FunctionInfo,
) -> Vec<(usize, usize)> {
    let place = |names: &[String], name: &str| names.iter().position(|own| own == name);
    let named = signatures.find_map(|signature| Some(signature.states()).filter(|named| !named.is_empty()));
    let pairs = named.iter().flatten();
    let places = |(input, output): &(String, String)| {
        Some((place(&info.input_names, input)?, place(&info.output_names, output)?))
    };
    pairs.filter_map(places).collect()
}

/// Names of inputs or outputs: the first list of as many, else those of the declaration.
fn names(
    mut listed: impl Iterator<Item = Vec<String>>,
    declared: Option<&Vec<Field>>,
    count: usize,
) -> Vec<String> {
    let fits = listed.find(|names| names.len() == count);
    fits.unwrap_or_else(|| declared.into_iter().flatten().map(|field| field.name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_formats::vmfb::Attr;

    fn signature(convention: &str, attrs: &[(&str, &str)]) -> FunctionSignature {
        let attr = |(key, value): &(&str, &str)| Attr { key: (*key).to_owned(), value: (*value).to_owned() };
        FunctionSignature {
            calling_convention: convention.to_owned(),
            attrs: attrs.iter().map(attr).collect(),
        }
    }

    const DECLARED: (&str, &str) =
        (attribute::DECLARATION, "sync func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (%y: tensor<4xf32>)");
    const FENCES: (&str, &str) = (attribute::CALL_MODEL, attribute::COARSE_FENCES);

    fn names(info: &FunctionInfo) -> [Option<&str>; 4] {
        [info.input_name(0), info.input_name(1), info.output_name(0), info.output_name(1)]
    }

    #[test]
    fn names_come_from_the_model_or_the_declaration() {
        let info = FunctionInfo::new("m", "f", &signature("0rr_r", &[DECLARED]), None).unwrap();
        assert_eq!(names(&info), [Some("a"), Some("b"), Some("y"), None]);
        let of_model =
            [DECLARED, (attribute::INPUTS, r#"["ids:0","mask"]"#), (attribute::OUTPUTS, r#"["out 1"]"#)];
        let info = FunctionInfo::new("m", "f", &signature("0rr_r", &of_model), None).unwrap();
        assert_eq!(names(&info), [Some("ids:0"), Some("mask"), Some("out 1"), None]);
        // What does not fit the function is nobody's names.
        for wrong in ["[\"a\"]", "[1, 2]", "a, b", ""] {
            let attrs = [DECLARED, (attribute::INPUTS, wrong)];
            let info = FunctionInfo::new("m", "f", &signature("0rr_r", &attrs), None).unwrap();
            assert_eq!(names(&info)[..2], [Some("a"), Some("b")], "{wrong}");
        }
        let info = FunctionInfo::new("m", "f", &signature("0rr_r", &[]), None).unwrap();
        assert_eq!(names(&info), [None; 4]);
    }

    #[test]
    fn messages_show_the_ends_of_long_declarations() {
        assert_eq!(shortened("0r_r"), "0r_r");
        let long = format!("func @main({}) -> ä", "%past: tensor<1xf16>, ".repeat(99));
        let shown = shortened(&long);
        assert!(shown.starts_with("func @main(%past") && shown.ends_with("-> ä"), "{shown}");
        assert_eq!(shown.chars().count(), MOST_SHOWN + 3);
    }

    #[test]
    fn a_sibling_that_takes_fences_launches_a_function() {
        let plain = signature("0rI_r", &[]);
        let with = |sibling: &FunctionSignature| {
            FunctionInfo::new("m", "f", &plain, Some(("f$async", sibling))).unwrap()
        };
        let info = with(&signature("0rIrr_r", &[FENCES, (attribute::CALLS, attribute::INDEPENDENT)]));
        let launch = info.launch().unwrap();
        assert!(launch.independent && launch.name == "f$async" && info.can_overlap() && !info.is_async);
        assert!(!with(&signature("0rIrr_r", &[FENCES])).launch().unwrap().independent);
        for other in [
            signature("0rIrr_r", &[]),
            signature("0rIr_r", &[FENCES]),
            signature("0rIri_r", &[FENCES]),
            signature("0Irrr_r", &[FENCES]),
            signature("0rIrr_v", &[FENCES]),
            signature("nonsense", &[FENCES]),
        ] {
            assert!(!with(&other).can_overlap(), "{other:?}");
        }
        let info = FunctionInfo::new("m", "g", &signature("0rrr_r", &[FENCES]), None).unwrap();
        assert!(info.is_async && info.input_kinds() == [Kind::Ref] && info.launch().unwrap().name == "g");
    }
}
