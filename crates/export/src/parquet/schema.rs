//! The names and types of columns.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `BOOLEAN`.
    Bool,
    /// `INT32`.
    Int,
    /// `INT64`.
    Long,
    /// `DOUBLE`.
    Double,
    /// `STRING`.
    Text,
}

/// A field of a table: a column, or several that belong together.
#[derive(Clone, Debug)]
pub struct Field {
    name: String,
    shape: Shape,
    is_nullable: bool,
}

#[derive(Clone, Debug)]
enum Shape {
    Value(Kind),
    /// Lists of values, or of structures.
    List(Box<Field>),
    Struct(Vec<Field>),
    /// Pairs of keys and values, all of them texts.
    Map,
}

impl Field {
    /// A column without nulls.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self::shaped(name, Shape::Value(kind))
    }

    /// Lists of values without nulls.
    #[must_use]
    pub fn list(name: impl Into<String>, kind: Kind) -> Self {
        Self::shaped(name, Shape::List(Box::new(Self::new("element", kind))))
    }

    /// Lists of structures, with a column for each field of these.
    #[must_use]
    pub fn list_of_structs(name: impl Into<String>, fields: Vec<Self>) -> Self {
        let element = Self::shaped("element", Shape::Struct(fields));
        Self::shaped(name, Shape::List(Box::new(element)))
    }

    /// Maps of texts to texts, with a column for keys, and one for values.
    #[must_use]
    pub fn map(name: impl Into<String>) -> Self {
        Self::shaped(name, Shape::Map)
    }

    /// The same with nulls.
    #[must_use]
    pub fn nullable(self) -> Self {
        Self {
            is_nullable: true,
            ..self
        }
    }

    fn shaped(name: impl Into<String>, shape: Shape) -> Self {
        Self {
            name: name.into(),
            shape,
            is_nullable: false,
        }
    }

    /// For each of its columns: true if it may have nulls.
    pub(super) fn columns(&self) -> Vec<bool> {
        match &self.shape {
            Shape::Value(_) => vec![self.is_nullable],
            Shape::List(element) => element.columns(),
            Shape::Struct(fields) => fields.iter().flat_map(Self::columns).collect(),
            Shape::Map => vec![false; 2],
        }
    }

    fn to_type(&self) -> Result<TypePtr, ParquetError> {
        let repetition = if self.is_nullable {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let (logical, fields) = match &self.shape {
            Shape::Value(kind) => return self.value_type(*kind, repetition),
            Shape::List(element) => {
                let list = repeated("list", vec![element.to_type()?])?;
                (Some(LogicalType::List), vec![list])
            }
            Shape::Struct(fields) => (None, types(fields)?),
            Shape::Map => {
                let pair = ["key", "value"].map(|name| Self::new(name, Kind::Text));
                let pairs = repeated("key_value", types(&pair)?)?;
                (Some(LogicalType::Map), vec![pairs])
            }
        };
        let group = Type::group_type_builder(&self.name)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .with_fields(fields);
        group.build().map(Arc::new)
    }

    fn value_type(&self, kind: Kind, repetition: Repetition) -> Result<TypePtr, ParquetError> {
        let physical = match kind {
            Kind::Bool => Physical::BOOLEAN,
            Kind::Int => Physical::INT32,
            Kind::Long => Physical::INT64,
            Kind::Double => Physical::DOUBLE,
            Kind::Text => Physical::BYTE_ARRAY,
        };
        let value = Type::primitive_type_builder(&self.name, physical)
            .with_repetition(repetition)
            .with_logical_type((kind == Kind::Text).then_some(LogicalType::String));
        value.build().map(Arc::new)
    }
}

fn types(fields: &[Field]) -> Result<Vec<TypePtr>, ParquetError> {
    fields.iter().map(Field::to_type).collect()
}

fn repeated(name: &str, fields: Vec<TypePtr>) -> Result<TypePtr, ParquetError> {
    let group = Type::group_type_builder(name)
        .with_repetition(Repetition::REPEATED)
        .with_fields(fields);
    group.build().map(Arc::new)
}

/// The schema of a table.
pub(super) fn schema(fields: &[Field]) -> Result<TypePtr, ParquetError> {
    let root = Type::group_type_builder("schema").with_fields(types(fields)?);
    root.build().map(Arc::new)
}
