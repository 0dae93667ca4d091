//! A table as Parquet.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::columns::Columns;
use super::{Exported, Written};
use crate::files::{Unfinished, cannot_write};

/// Writes a row for each line of the runs' metrics, a group of rows for each run. What a line lacks is null.
///
/// # Errors
/// A folder without a run, and files that cannot be read or written.
pub(crate) fn write(runs: &[PathBuf], path: &Path) -> Result<Vec<Written>> {
    let columns = Columns::of(runs)?;
    let cannot = || cannot_write(path);
    let (file, unfinished) = Unfinished::create(path).with_context(cannot)?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer =
        SerializedFileWriter::new(file, schema(&columns)?, properties).with_context(cannot)?;
    for run in runs {
        let exported = Exported::read(run)?;
        let mut group = writer.next_row_group().with_context(cannot)?;
        write_run(&exported, &columns, &mut group).with_context(cannot)?;
        group.close().with_context(cannot)?;
    }
    writer.close().with_context(cannot)?;
    unfinished.finish().with_context(cannot)?;
    Ok(vec![Written { path: path.to_owned(), advice: None }])
}

/// The type of a column.
fn physical(name: &str, columns: &Columns) -> PhysicalType {
    match name {
        "seed" | "iteration" | "env_steps" => PhysicalType::INT64,
        "run" | "experiment" => PhysicalType::BYTE_ARRAY,
        setting if columns.settings.iter().any(|key| key == setting) => PhysicalType::BYTE_ARRAY,
        _ => PhysicalType::DOUBLE,
    }
}

fn schema(columns: &Columns) -> Result<Arc<Type>> {
    let field = |name: &str| {
        let physical = physical(name, columns);
        let text = physical == PhysicalType::BYTE_ARRAY;
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(text.then_some(LogicalType::String))
            .build()
            .map(Arc::new)
    };
    let fields = columns.names().map(field).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("metrics").with_fields(fields).build()?))
}

/// Writes the rows of a run, column by column.
fn write_run(
    exported: &Exported,
    columns: &Columns,
    group: &mut SerializedRowGroupWriter<'_, File>,
) -> Result<()> {
    let Exported { overview, series, name, .. } = exported;
    let rows = series.rows().count();
    for column in columns.names() {
        let text = |text: &str| vec![Some(ByteArray::from(text)); rows];
        let numbers = || series.rows().map(|row| row.number(column)).collect::<Vec<_>>();
        let integers = || numbers().into_iter().map(|x| x.map(|x| x as i64)).collect::<Vec<_>>();
        match column {
            "run" => write_column::<ByteArrayType>(text(name), group)?,
            "experiment" => write_column::<ByteArrayType>(text(&overview.experiment), group)?,
            "seed" => write_column::<Int64Type>(vec![Some(overview.seed as i64); rows], group)?,
            "iteration" | "env_steps" => write_column::<Int64Type>(integers(), group)?,
            "seconds" => {
                let seconds = series.rows().map(|row| Some(row.seconds)).collect();
                write_column::<DoubleType>(seconds, group)?;
            }
            key if physical(key, columns) == PhysicalType::BYTE_ARRAY => {
                let values = match overview.settings.get(key) {
                    Some(value) => text(value),
                    None => vec![None; rows],
                };
                write_column::<ByteArrayType>(values, group)?;
            }
            _ => write_column::<DoubleType>(numbers(), group)?,
        }
    }
    Ok(())
}

/// Writes the next column, whose missing values are null.
fn write_column<T: DataType>(
    values: Vec<Option<T::T>>,
    group: &mut SerializedRowGroupWriter<'_, File>,
) -> Result<()> {
    let mut column = group.next_column()?.context("the schema has a column for each value")?;
    let there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&there), None)?;
    column.close()?;
    Ok(())
}
