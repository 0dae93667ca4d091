//! Keys, types, ranges and values of a table of settings, read from the JSON schema of the table's
//! struct. The struct is the only definition: checks, messages and `podracer describe` all use it.
//!
//! In addition to schemars' attributes, a field may have `#[schemars(extend("x-must" = "..."))]`, a
//! requirement in words if "at least 1" says too little, and `#[schemars(extend("x-resume" =
//! true))]`: a resumed run may change the setting. A type with `x-mjcf` is a robot's model: settings
//! name a file, and the loaded settings have its text.

mod values;

use std::fmt;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use toml::Table;

pub(crate) use values::Mistake;

/// A table of settings: its documentation and its keys, in the order of the struct's fields.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The struct's documentation, in one line.
    pub doc: String,
    /// Settings, in the order of the struct's fields.
    pub keys: Vec<Key>,
    /// The values of the struct's `Default`. A field that is `None` there is absent.
    pub defaults: Table,
}

/// A setting of a table.
#[derive(Clone, Debug)]
pub struct Key {
    /// Name of the setting in its table.
    pub name: String,
    /// The field's documentation, in one line.
    pub doc: String,
    /// Type and range of its values.
    pub kind: Kind,
    /// Requirement on the value in words, if type and range do not express it: the field's
    /// `x-must`.
    pub must: Option<String>,
    /// True if a resumed run may have another value: the field's `x-resume`.
    pub resume: bool,
    /// True for a robot's model (the type's `x-mjcf`): the loaded settings have its text.
    pub mjcf: bool,
    /// True for an `Option`: the setting may be absent, and the value "none" unsets it.
    pub optional: bool,
}

/// A type of values, with their range.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`
    Boolean,
    /// An integer. `unsigned` if its type has no negative values.
    Integer {
        /// True if the type has no negative values.
        unsigned: bool,
        /// Range of the integers.
        range: Range,
    },
    /// A floating-point number; integers are converted.
    Number(Range),
    /// Any string at all.
    Text,
    /// One of these strings, each with its documentation.
    OneOf(Vec<(String, String)>),
    /// A list of values of one type.
    List {
        /// The type of each element.
        element: Box<Kind>,
        /// The least and the greatest number of elements.
        length: (usize, usize),
    },
    /// A table with any keys.
    Table,
    /// One of several types, with a readable description in `expected`.
    Any {
        /// The ways to write a value.
        expected: String,
        /// Types of these ways.
        kinds: Vec<Kind>,
    },
}

/// The numbers of a range; `None` for no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// The least number.
    pub least: Option<f64>,
    /// An exclusive lower bound.
    pub above: Option<f64>,
    /// The greatest number.
    pub most: Option<f64>,
}

impl Schema {
    /// The schema of a struct, with its defaults.
    ///
    /// # Errors
    /// Returns defaults that are not a TOML table, and types that are not structs with named
    /// fields.
    pub fn of<T: Default + Serialize + JsonSchema>() -> Result<Self, String> {
        let name = std::any::type_name::<T>();
        let defaults = Table::try_from(T::default()).map_err(|error| {
            format!("the defaults of `{name}` cannot be written as TOML: {error}")
        })?;
        let schema = Json::from(SchemaGenerator::default().into_root_schema_for::<T>());
        let reader = Reader { definitions: schema.get("$defs").unwrap_or(&Json::Null) };
        let mut keys = Vec::new();
        reader.keys(&schema, &mut keys);
        if let Some(key) = defaults.keys().find(|&name| keys.iter().all(|key| key.name != *name)) {
            return Err(format!(
                "`{name}` serializes `{key}`, which its JSON schema does not have: derive Serialize and JsonSchema alike"
            ));
        }
        Ok(Schema { doc: doc(&schema), keys, defaults })
    }

    /// The key with this name.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// Reader of the parts of a schema, which may refer to its definitions.
struct Reader<'a> {
    definitions: &'a Json,
}

impl Reader<'_> {
    /// The properties of a struct, including flattened fields.
    fn keys(&self, schema: &Json, keys: &mut Vec<Key>) {
        let schema = self.resolved(schema);
        for (name, schema) in
            schema.get("properties").and_then(Json::as_object).into_iter().flatten()
        {
            let own = self.resolved(schema);
            let text = match doc(schema) {
                text if text.is_empty() => doc(own),
                text => text,
            };
            let must = schema.get("x-must").or_else(|| own.get("x-must"));
            keys.push(Key {
                name: name.clone(),
                doc: text,
                kind: self.kind(schema),
                must: must.and_then(Json::as_str).map(str::to_owned),
                resume: schema.get("x-resume") == Some(&json!(true)),
                mjcf: own.get("x-mjcf") == Some(&json!(true)),
                optional: optional(schema),
            });
        }
        for part in schema.get("allOf").and_then(Json::as_array).into_iter().flatten() {
            self.keys(part, keys);
        }
    }

    /// The definition that a schema refers to, or the schema.
    fn resolved<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let path = schema.get("$ref").and_then(Json::as_str);
        let found = path.and_then(|path| self.definitions.get(path.strip_prefix("#/$defs/")?));
        found.map_or(schema, |found| self.resolved(found))
    }

    fn kind(&self, schema: &Json) -> Kind {
        let own = self.resolved(schema);
        if let Some(names) = names(own) {
            return Kind::OneOf(names);
        }
        let several = own.get("anyOf").or_else(|| own.get("oneOf")).and_then(Json::as_array);
        if let Some(several) = several {
            let kinds = several.iter().filter(|one| one.get("type") != Some(&json!("null")));
            let mut kinds: Vec<Kind> = kinds.map(|one| self.kind(one)).collect();
            if kinds.len() == 1 {
                return kinds.remove(0);
            }
            let all = || kinds.iter().map(Kind::to_string).collect::<Vec<_>>().join(", or ");
            let expected = own.get("x-expected").and_then(Json::as_str);
            return Kind::Any { expected: expected.map_or_else(all, str::to_owned), kinds };
        }
        // The types of an `Option` are its own and "null".
        let named = match own.get("type") {
            Some(Json::Array(several)) => several.iter().find(|one| **one != json!("null")),
            one => one,
        };
        let number = |key: &str| {
            let bound = schema.get(key).or_else(|| own.get(key));
            bound.and_then(Json::as_f64)
        };
        let range = Range {
            least: number("minimum"),
            above: number("exclusiveMinimum"),
            most: number("maximum"),
        };
        match named.and_then(Json::as_str) {
            Some("boolean") => Kind::Boolean,
            Some("integer") => {
                let format = own.get("format").and_then(Json::as_str).unwrap_or_default();
                Kind::Integer { unsigned: format.starts_with("uint"), range }
            }
            Some("number") => Kind::Number(range),
            Some("string") => Kind::Text,
            Some("array") => {
                let items = own.get("items").or_else(|| own.get("prefixItems")?.get(0));
                let element = Box::new(items.map_or(Kind::Table, |items| self.kind(items)));
                let length =
                    |key, otherwise| number(key).map_or(otherwise, |length| length as usize);
                Kind::List {
                    element,
                    length: (length("minItems", 0), length("maxItems", usize::MAX)),
                }
            }
            _ => Kind::Table,
        }
    }
}

/// True for a schema that allows null, such as an `Option`'s.
fn optional(schema: &Json) -> bool {
    let null = json!("null");
    let several = schema.get("anyOf").and_then(Json::as_array).into_iter().flatten();
    let typed = schema.get("type").and_then(Json::as_array).into_iter().flatten();
    several.filter_map(|one| one.get("type")).chain(typed).any(|named| *named == null)
}

/// The strings of an enum, each with its documentation.
fn names(schema: &Json) -> Option<Vec<(String, String)>> {
    if let Some(values) = schema.get("enum").and_then(Json::as_array) {
        return values
            .iter()
            .map(|value| Some((value.as_str()?.to_owned(), String::new())))
            .collect();
    }
    let one = |schema: &Json| Some((schema.get("const")?.as_str()?.to_owned(), doc(schema)));
    let Some(variants) = schema.get("oneOf").and_then(Json::as_array) else {
        return one(schema).map(|one| vec![one]);
    };
    // Variants without documentation share one `enum`.
    let names = variants.iter().map(names);
    Some(names.collect::<Option<Vec<_>>>()?.concat())
}

/// A schema's documentation in one line, without rustdoc's links.
fn doc(schema: &Json) -> String {
    let text = schema.get("description").and_then(Json::as_str).unwrap_or_default();
    unlinked(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The text with the names of rustdoc's links in place of the links: [`Foo`], [`Foo`](crate::Foo),
/// [`Foo`][foo] and [words](crate::Foo). Other brackets stay: shapes such as `[T, B]`, and
/// intervals.
fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, inside) = rest.split_at(open);
        out += before;
        // Brackets within code are code.
        let in_code = out.matches('`').count() % 2 == 1;
        let close = inside.find(']').filter(|_| !in_code);
        let Some(close) = close else {
            out.push('[');
            rest = &inside[1..];
            continue;
        };
        let (name, after) = (&inside[1..close], &inside[close + 1..]);
        let target = [('(', ')'), ('[', ']')].into_iter().find_map(|(begin, end)| {
            after.strip_prefix(begin)?.split_once(end).map(|(_, after)| after)
        });
        let is_code =
            name.starts_with('`') && name.ends_with('`') && name.matches('`').count() == 2;
        if target.is_some() || is_code {
            out += name;
            rest = target.unwrap_or(after);
        } else {
            out.push('[');
            rest = &inside[1..];
        }
    }
    out + rest
}

/// Text of a type in `podracer describe`: `integer, 1 to 1024`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Boolean => f.write_str("true or false"),
            Kind::Integer { range, .. } => write!(f, "integer{range}"),
            Kind::Number(range) => write!(f, "number{range}"),
            Kind::Text => f.write_str("string"),
            Kind::OneOf(names) => f.write_str(
                &names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" | "),
            ),
            Kind::List { element, length } => match length {
                (0, usize::MAX) => write!(f, "list of ({element})"),
                (least, most) if least == most => write!(f, "list of {least} ({element})"),
                (least, usize::MAX) => write!(f, "list of at least {least} ({element})"),
                (0, most) => write!(f, "list of at most {most} ({element})"),
                (least, most) => write!(f, "list of {least} to {most} ({element})"),
            },
            Kind::Table => f.write_str("table"),
            Kind::Any { expected, .. } => f.write_str(expected),
        }
    }
}

/// Bounds of 2^31 and beyond are left out: they do not matter in practice, and have too many digits
/// to read.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { least, above, most } = *self;
        match (least, above, most.filter(|&most| most < (1_u64 << 31) as f64)) {
            (Some(least), _, Some(most)) => write!(f, ", {least} to {most}"),
            (Some(least), _, None) => write!(f, ", at least {least}"),
            (None, Some(above), Some(most)) => write!(f, ", above {above}, at most {most}"),
            (None, Some(above), None) => write!(f, ", above {above}"),
            (None, None, Some(most)) => write!(f, ", at most {most}"),
            (None, None, None) => Ok(()),
        }
    }
}

impl Schema {
    /// The table as JSON, for programs: `[{"key", "type", "value", "default", "values", "doc"}]`.
    /// `values` has the present settings.
    #[must_use]
    pub fn to_json(&self, values: &Table) -> Json {
        let key = |key: &Key| {
            let mut object = Map::new();
            object.insert("key".to_owned(), json!(key.name));
            object.insert("type".to_owned(), json!(key.kind.to_string()));
            object.insert("value".to_owned(), json!(values.get(&key.name)));
            object.insert("default".to_owned(), json!(self.defaults.get(&key.name)));
            if let Kind::OneOf(names) = &key.kind {
                let names: Map<String, Json> =
                    names.iter().map(|(name, doc)| (name.clone(), json!(doc))).collect();
                object.insert("values".to_owned(), names.into());
            }
            object.insert("doc".to_owned(), json!(key.doc));
            Json::from(object)
        };
        self.keys.iter().map(key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links with and without backticks are replaced by their names, without targets.
    #[test]
    fn links_of_rustdoc_are_no_part_of_a_description() {
        for (text, expected) in [
            ("a [`Foo`] and [`Bar`](crate::Bar).", "a `Foo` and `Bar`."),
            ("[`Foo`][foo], [this page](https://example.org/a)", "`Foo`, this page"),
            ("f32 `[T, B]`, in [0, 1) or [0, 1]", "f32 `[T, B]`, in [0, 1) or [0, 1]"),
            ("`[[16, 8]]` and [`a::B`]: [open", "`[[16, 8]]` and `a::B`: [open"),
            ("[`a`, `b`]", "[`a`, `b`]"),
        ] {
            assert_eq!(unlinked(text), expected);
        }
    }
}
