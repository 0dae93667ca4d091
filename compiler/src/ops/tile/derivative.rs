//! tile's derivatives: the body of each is the derivative of one lane, again in tiles.

use super::{Tile, without_unused};
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::ops::{Effect, Op, Operand};
use crate::transform::{
    Linearized, TransformError, dce, deal, given, jvp, linearize, transpose, with_given,
};

impl Tile {
    /// The marks of operands that have the batch, followed by the marks of the tangents given.
    fn with_tangents(marks: Vec<bool>, batched: &[bool], tangents: &[Slope]) -> Vec<bool> {
        let of_tangents = batched.iter().zip(tangents).filter(|(_, tangent)| tangent.is_some());
        marks.into_iter().chain(of_tangents.map(|(&is, _)| is)).collect()
    }

    pub(super) fn forward(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Result<(Vec<Var>, Slopes), TransformError> {
        let (body, marks) = jvp(&self.body, &given(tangents))?;
        let batched = self.batched();
        let batched = Self::with_tangents(batched.clone(), &batched, tangents);
        let operands = with_given(inputs.iter().copied(), tangents);
        let mut values = b.emit(self.around(body, &batched), &operands);
        let slopes = values.split_off(self.body.results.len());
        Ok((values, deal(&marks, slopes)))
    }

    pub(super) fn linearized(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Result<(Vec<Var>, Slopes), TransformError> {
        let Linearized { primal, linear, tangent_results, .. } =
            linearize(&self.body, &given(tangents))?;
        let batched = self.batched();
        let depends = primal.depends_on(&batched);
        let (results, residuals) = primal.results.split_at(self.body.results.len());
        // A residual that is an operand is read from the operand. With a batch, a residual that is the
        // same for all lanes is computed once, unless a collective would run again for it. The tile
        // stacks the others.
        let apart = !self.batch.is_empty() && self.effect() == Effect::Pure;
        let place = |var: &Var| match primal.params.iter().position(|param| param == var) {
            Some(i) => Place::Operand(i),
            None if !apart || depends[var.index()] => Place::Stacked,
            None => Place::Shared,
        };
        let places: Vec<Place> = residuals.iter().map(place).collect();
        let at = |wanted: Place| {
            let here = residuals.iter().zip(&places).filter(move |(_, place)| **place == wanted);
            here.map(|(&var, _)| var)
        };
        let outputs: Vec<Var> = results.iter().copied().chain(at(Place::Stacked)).collect();
        let body = dce(&primal.subset(&primal.params, &primal.eqns, &outputs));
        let mut values = b.emit(self.around(body, &batched), inputs);
        let mut stacked = values.split_off(results.len()).into_iter();

        let shared: Vec<Var> = at(Place::Shared).collect();
        let (once, kept) =
            without_unused(dce(&primal.subset(&primal.params, &primal.eqns, &shared)));
        let operands: Vec<Var> = kept.iter().map(|&i| inputs[i]).collect();
        let mut shared = b.inline(&once, &operands).into_iter();

        let read = places.iter().map(|place| match place {
            Place::Operand(i) => (inputs[*i], batched[*i]),
            Place::Stacked => (stacked.next().expect("a result"), !self.batch.is_empty()),
            Place::Shared => (shared.next().expect("a shared value"), false),
        });
        let (read, marks): (Vec<Var>, Vec<bool>) = read.unzip();
        let marks = Self::with_tangents(marks, &batched, tangents);
        let slopes = b.emit(self.around(linear, &marks), &with_given(read, tangents));
        Ok((values, deal(&tangent_results, slopes)))
    }

    pub(super) fn transposed(
        &self,
        b: &mut Builder,
        inputs: &[Operand],
        cotangents: &[Slope],
    ) -> Result<Slopes, TransformError> {
        let marked: Vec<bool> = inputs.iter().map(Operand::is_linear).collect();
        let force = vec![false; marked.iter().filter(|is| **is).count()];
        let (body, sent) = transpose(&self.body, &marked, &given(cotangents), &force)?;
        let own = self.batched();
        let batch = !self.batch.is_empty();
        let known = own.iter().zip(&marked).filter(|(_, linear)| !**linear).map(|(&is, _)| is);
        let given = cotangents.iter().flatten().map(|_| batch);
        let batched: Vec<bool> = known.chain(given).collect();
        let operands = with_given(inputs.iter().filter_map(Operand::known), cotangents);
        let mut values = b.emit(self.around(body, &batched), &operands).into_iter();
        let mut sent = sent.into_iter();
        let mut results = Vec::with_capacity(inputs.len());
        for (&linear, &own) in marked.iter().zip(&own) {
            let value = (linear && sent.next().unwrap_or(false))
                .then(|| values.next().expect("one value per mark"));
            // Every lane sends a cotangent to what all lanes share.
            let summed = batch && !own;
            results.push(value.map(|x| if summed { b.reduce_sum(x, &[0]) } else { x }));
        }
        Ok(results)
    }
}

/// The source of a residual of the body for the linear tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// An operand of the tile, by its position.
    Operand(usize),
    /// A result of the first tile.
    Stacked,
    /// A value that all lanes share.
    Shared,
}
