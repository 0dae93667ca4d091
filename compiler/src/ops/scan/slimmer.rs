//! Cheaper scans with the same results.

use super::Scan;
use crate::ir::{Builder, Var};
use crate::scalar::Scalar;
use std::sync::Arc;

/// The source of a parameter of the slimmer body.
enum Source {
    /// An operand that stays, in its old role.
    Own,
    /// A carry that never changes: a constant operand.
    Still,
    /// The parameter with this index, which always has the same value.
    Like(usize),
    /// A known constant, made inside the body.
    Value(Scalar),
}

impl Scan {
    /// Emits the loop without constant or repeated operands, carries that never change, and outputs
    /// that are known without the loop; `None` if the loop has none of them.
    pub(crate) fn slimmer(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        known: &[Option<Scalar>],
    ) -> Option<Vec<Var>> {
        let body = &self.body;
        let carried = self.carried();
        let is_still =
            |i: usize| carried.contains(&i) && body.results[i - self.consts] == body.params[i];
        let source = |i: usize| {
            let moves = carried.contains(&i) && !is_still(i);
            // Constants are equivalent to constants, slices to slices, and carries if they begin
            // and continue in the same way.
            let alike = |&j: &usize| {
                let role = |i: usize| (i >= carried.end, carried.contains(&i) && !is_still(i));
                inputs[i] == inputs[j]
                    && role(i) == role(j)
                    && (!moves || body.results[i - self.consts] == body.results[j - self.consts])
            };
            match (known[i], (0..i).find(alike)) {
                (Some(value), _) if !moves => Source::Value(value),
                (_, Some(j)) => Source::Like(j),
                _ if is_still(i) => Source::Still,
                _ => Source::Own,
            }
        };
        let sources: Vec<Source> = (0..inputs.len()).map(source).collect();
        // An output that is a slice or a constant of the loop, or another output.
        let ys = self.carries..body.results.len();
        let given = |k: usize| {
            (0..inputs.len())
                .find(|&i| body.params[i] == body.results[k])
                .filter(|&i| !carried.contains(&i) || is_still(i))
        };
        let twin = |k: usize| (ys.start..k).find(|&j| body.results[j] == body.results[k]);
        let own_operands = sources.iter().all(|source| matches!(source, Source::Own));
        if own_operands && ys.clone().all(|k| given(k).is_none() && twin(k).is_none()) {
            return None;
        }

        let mut inner = Builder::new();
        let mut params: Vec<Option<Var>> = vec![None; inputs.len()];
        let mut operands = Vec::new();
        let mut add =
            |range: std::ops::Range<usize>, inner: &mut Builder, wanted: fn(&Source) -> bool| {
                for i in range.filter(|&i| wanted(&sources[i])) {
                    params[i] = Some(inner.param(body.ty(body.params[i]).clone()));
                    operands.push(inputs[i]);
                }
                operands.len()
            };
        let is_own = |source: &Source| matches!(source, Source::Own);
        add(0..carried.start, &mut inner, is_own);
        let consts = add(carried.clone(), &mut inner, |source| matches!(source, Source::Still));
        let carries = add(carried.clone(), &mut inner, is_own) - consts;
        add(carried.end..inputs.len(), &mut inner, is_own);
        for (i, source) in sources.iter().enumerate() {
            match source {
                Source::Like(j) => params[i] = params[*j],
                Source::Value(value) => {
                    params[i] = Some(inner.splat(body.ty(body.params[i]), *value))
                }
                Source::Own | Source::Still => {}
            }
        }
        let arguments: Vec<Var> =
            params.into_iter().map(|param| param.expect("every source gives one")).collect();
        let values = inner.inline(body, &arguments);
        // The remaining outputs, and the source of each result of the old loop.
        let mut outputs = Vec::new();
        let mut found: Vec<Result<usize, Var>> = Vec::new();
        for (k, &value) in values.iter().enumerate() {
            let i = self.consts + k;
            found.push(if k >= self.carries {
                match (given(k), twin(k)) {
                    (Some(i), _) if i >= carried.end => Err(inputs[i]),
                    (Some(i), _) => Err(b.broadcast_leading(inputs[i], self.length)),
                    (None, Some(j)) => match found[j] {
                        Ok(position) => Ok(position),
                        Err(var) => Err(var),
                    },
                    (None, None) => Ok(outputs.len()),
                }
            } else if is_still(i) {
                Err(inputs[i])
            } else if let Source::Like(j) = sources[i] {
                found[j - self.consts]
            } else {
                Ok(outputs.len())
            });
            if found[k] == Ok(outputs.len()) {
                outputs.push(value);
            }
        }
        let slimmer = Scan {
            body: Arc::new(inner.finish(body.name.clone(), outputs)),
            consts,
            carries,
            ..self.clone()
        };
        let results = b.emit(slimmer, &operands);
        Some(
            found
                .into_iter()
                .map(|place| place.map_or_else(|var| var, |position| results[position]))
                .collect(),
        )
    }
}
