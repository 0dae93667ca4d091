//! `tile`: a function that a batch runs in tiles of some lanes, which fit the cache.

mod derivative;
mod sample;

use super::TypeError;
use super::once::pruned;
use super::op::{Effect, Op, OpRef, Pruned, Sample, effect_of};
use super::rules::region_derivative;
use super::scan::Scan;
use crate::array::Array;
use crate::ir::{Batched, Builder, Func, Var};
use crate::lower::{Hlo, HloResults, HloValue, lower_func};
use crate::op_struct;
use crate::transform::{VmapContext, dce, settle, settle_launched, vmap};
use crate::types::TensorType;
use std::sync::Arc;

op_struct! {
    /// Runs `body` for one lane, or for each lane of a batch.
    ///
    /// Operands: the operands of the body. With a batch, every operand has it as leading axis, except the
    /// `shared` operands; every result has it as leading axis.
    ///
    /// On a platform that launches each kernel, the body runs for all lanes at once. On other
    /// platforms a batch of more than `lanes` lanes is a loop over tiles, so that the values of a
    /// tile stay in the cache. The last row of each operand fills the last tile.
    Tile = "tile" {
        /// The function of one lane.
        body: Arc<Func>,
        /// The number of lanes of the batch; empty without a batch.
        batch: Vec<usize>,
        /// Positions of the operands that all lanes of the batch share, rising; empty without a batch.
        shared: Vec<usize>,
        /// The most lanes of a tile, at least 1.
        lanes: usize,
    }
}

/// Widths of tiles are multiples of this number of lanes, if that makes no further tile: vectors of
/// a CPU hold 8 f32 values or more.
const VECTOR: usize = 8;

impl Tile {
    /// The op for one lane.
    pub fn new(body: Arc<Func>, lanes: usize) -> Tile {
        Tile { body, batch: Vec::new(), shared: Vec::new(), lanes }
    }

    /// The op with another body; `batched` marks the operands that have the batch.
    fn around(&self, body: Func, batched: &[bool]) -> Tile {
        let shared = (0..batched.len()).filter(|&i| !batched[i] && !self.batch.is_empty());
        Tile { body: Arc::new(body), shared: shared.collect(), ..self.clone() }
    }

    /// Marks the operands that have the batch as leading axis.
    fn batched(&self) -> Vec<bool> {
        let batch = !self.batch.is_empty();
        (0..self.body.params.len()).map(|i| batch && !self.shared.contains(&i)).collect()
    }

    /// A type with the batch in front, if there is one.
    fn stacked(&self, ty: TensorType) -> TensorType {
        self.batch.first().map_or_else(|| ty.clone(), |&size| ty.stacked(size))
    }

    /// `body` over `size` lanes, with the batch in every result.
    fn over(&self, body: &Func, size: usize) -> Func {
        let force = vec![true; body.results.len()];
        vmap(body, &VmapContext::new(size), &self.batched(), &force).0
    }

    /// The same function without tiles, for a body that is settled or not.
    fn whole(&self, body: &Func) -> Func {
        self.batch.first().map_or_else(|| body.clone(), |&size| self.over(body, size))
    }

    /// The number of tiles and their width; `None` if the batch is not divided.
    fn division(&self) -> Option<(usize, usize)> {
        let &size = self.batch.first()?;
        if size <= self.lanes || effect_of(&[&self.body]) == Effect::Collective {
            return None;
        }
        let tiles = size.div_ceil(self.lanes);
        let width = size.div_ceil(tiles);
        let full = width.next_multiple_of(VECTOR);
        let fits = full <= self.lanes && size.div_ceil(full) == tiles;
        Some((tiles, if fits { full } else { width }))
    }

    /// The function that replaces the op on a platform.
    fn form(&self, launches: bool, types: &[TensorType]) -> Func {
        // Tiles in the body first: over a batch they would become tiles again.
        let body = settle_launched(&self.body, launches);
        let form = match self.division().filter(|_| !launches) {
            Some((tiles, width)) => self.tiled(&body, tiles, width, types),
            None => self.whole(&body),
        };
        settle(&form).into_owned()
    }

    /// The loop over tiles.
    fn tiled(&self, body: &Func, tiles: usize, width: usize, types: &[TensorType]) -> Func {
        let batched = self.batched();
        let size = self.batch[0];
        let mut b = Builder::new();
        let operands = b.add_params(types.to_vec());
        let mut consts: Vec<Var> = Vec::new();
        let mut xs: Vec<Var> = Vec::new();
        for (&x, &batched) in operands.iter().zip(&batched) {
            if !batched {
                consts.push(x);
                continue;
            }
            let row = b.ty(x).shape[1..].to_vec();
            let last = b.slice_axis(x, 0, size - 1, size);
            let fill = [&[tiles * width - size], &row[..]].concat();
            let axes: Vec<usize> = (0..fill.len()).collect();
            let full = match fill[0] {
                0 => x,
                _ => {
                    let fill = b.broadcast_in_dim(last, &fill, &axes);
                    b.concatenate(&[x, fill], 0)
                }
            };
            xs.push(b.reshape(full, &[&[tiles, width], &row[..]].concat()));
        }
        let mut tile = self.over(body, width);
        let (shared, own): (Vec<usize>, Vec<usize>) =
            (0..batched.len()).partition(|&i| !batched[i]);
        tile.params = shared.iter().chain(&own).map(|&i| tile.params[i]).collect();
        let op = Scan {
            body: Arc::new(tile),
            length: tiles,
            reverse: false,
            consts: consts.len(),
            carries: 0,
        };
        let stacks = b.emit(op, &[consts, xs].concat());
        let results = stacks.into_iter().map(|y| {
            let row = b.ty(y).shape[2..].to_vec();
            let rows = b.reshape(y, &[&[tiles * width], &row[..]].concat());
            b.slice_axis(rows, 0, 0, size)
        });
        let results = results.collect();
        b.finish(body.name.clone(), results)
    }

    /// The op with a batch as a function of one lane of an outer batch. It has a tile inside if its
    /// own batch fills one.
    fn as_lane(&self, types: &[TensorType]) -> (Func, usize) {
        let size = self.batch[0];
        if size < self.lanes {
            return (self.whole(&self.body), self.lanes / size.max(1));
        }
        let mut b = Builder::new();
        let operands = b.add_params(types.to_vec());
        let results = b.emit(self.clone(), &operands);
        (b.finish(self.body.name.clone(), results), 1)
    }
}

impl Op for Tile {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, self.body.params.len())?;
        if self.lanes == 0 {
            refuse!("a tile must have at least one lane, got 0");
        }
        let rising = self.shared.is_sorted_by(|a, b| a < b);
        let within = self.shared.last().is_none_or(|&i| i < inputs.len());
        if self.batch.len() > 1 || !rising || !within {
            refuse!("a tile has one batch at most, and shares operands in rising order");
        }
        for (i, (param, batched)) in
            self.body.param_types().into_iter().zip(self.batched()).enumerate()
        {
            let param = if batched { self.stacked(param) } else { param };
            if inputs[i] != param {
                refuse!("operand {i} is {}, the tile takes {param}", inputs[i]);
            }
        }
        Ok(self.body.result_types().into_iter().map(|ty| self.stacked(ty)).collect())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let Some(&size) = self.batch.first() else {
            return self.body.eval(inputs);
        };
        let batched = self.batched();
        let types = self.body.result_types();
        let mut rows: Vec<Vec<Array>> = vec![Vec::new(); types.len()];
        for lane in 0..size {
            let own = inputs.iter().zip(&batched);
            let rows_of =
                |(x, is): (&Array, &bool)| if *is { x.index_leading(lane) } else { x.clone() };
            let results = self.body.eval(&own.map(rows_of).collect::<Vec<_>>());
            rows.iter_mut().zip(results).for_each(|(rows, result)| rows.push(result));
        }
        rows.iter().zip(&types).map(|(rows, ty)| Array::stack(ty, rows)).collect()
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let types: Vec<TensorType> = (inputs.iter().zip(batched))
            .map(|(&x, &is)| if is { b.ty(x).unstacked() } else { b.ty(x).clone() })
            .collect();
        if self.names_axis(cx) {
            let func = self.whole(&self.body);
            let force = vec![false; func.results.len()];
            let (func, marks) = vmap(&func, cx, batched, &force);
            return b.inline(&func, inputs).into_iter().zip(marks).collect();
        }
        let (body, lanes) = if self.batch.is_empty() {
            // The body is mapped later, but its warnings are part of this trace.
            vmap(&self.body, cx, batched, &vec![false; self.body.results.len()]);
            ((*self.body).clone(), self.lanes)
        } else {
            self.as_lane(&types)
        };
        // A result that no batched operand reaches is computed once.
        let depends = body.depends_on(batched);
        // A collective is run once, even if no batched operand reaches it.
        let joint = self.effect() == Effect::Collective;
        let wide: Vec<bool> =
            body.results.iter().map(|var| joint || depends[var.index()]).collect();
        let part = |of: bool| {
            let results: Vec<Var> = body
                .results
                .iter()
                .zip(&wide)
                .filter(|(_, is)| **is == of)
                .map(|(&r, _)| r)
                .collect();
            dce(&body.subset(&body.params, &body.eqns, &results))
        };
        let batch = Tile { batch: vec![cx.size], ..self.clone() };
        let mut many =
            b.emit(Tile { lanes, ..batch.around(part(true), batched) }, inputs).into_iter();
        let once = part(false);
        let mut once = if once.results.is_empty() {
            Vec::new().into_iter()
        } else {
            let (once, kept) = without_unused(once);
            let operands: Vec<Var> = kept.iter().map(|&i| inputs[i]).collect();
            b.emit(Tile::new(Arc::new(once), lanes), &operands).into_iter()
        };
        let mut next = |is: bool| if is { many.next() } else { once.next() };
        wide.iter().map(|&is| (next(is).expect("one value per result"), is)).collect()
    }

    fn asks_platform(&self) -> bool {
        true
    }

    fn for_platform(&self, launches: bool, inputs: &[TensorType]) -> Option<Func> {
        Some(self.form(launches, inputs))
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        let types: Vec<TensorType> = inputs.iter().map(|&input| hlo.ty(input)).collect();
        lower_func(hlo, &self.form(false, &types), inputs)
    }

    region_derivative! { Self::forward, Self::linearized, Self::transposed }

    fn prune(&self, used: &[bool]) -> Option<Pruned> {
        let (body, inputs, outputs) = pruned(&self.body, used)?;
        let batched = self.batched();
        let batched: Vec<bool> = inputs.iter().map(|&i| batched[i]).collect();
        Some(Pruned { op: OpRef::new(self.around(body, &batched)), inputs, outputs })
    }
}

/// The function without parameters that nothing reads, and the positions of the others.
fn without_unused(func: Func) -> (Func, Vec<usize>) {
    let used = vec![true; func.results.len()];
    let all = (0..func.params.len()).collect();
    match pruned(&func, &used) {
        Some((func, inputs, _)) => (func, inputs),
        None => (func, all),
    }
}

impl Tile {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        sample::samples()
    }
}
