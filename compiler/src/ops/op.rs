//! The trait that holds all rules of an op.

use super::error::TypeError;
use super::op_struct::OpStruct;
use super::save::Save;
use crate::array::Array;
use crate::ir::{Batched, Builder, Func, Loc, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue};
use crate::scalar::Scalar;
use crate::transform::{Mode, TransformError, VmapContext};
use crate::types::TensorType;
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A rule's result, or the reason why the op has no such rule.
#[derive(Clone, Debug)]
pub enum Rule<T> {
    /// The result of the rule.
    Some(T),
    /// The op has no such rule: the reason, and the alternative, as shown to the user.
    None(&'static str),
    /// An op inside one of this op's bodies has no such rule.
    Failed(TransformError),
}

impl<T> Rule<T> {
    /// Maps the result.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Rule<U> {
        match self {
            Rule::Some(value) => Rule::Some(f(value)),
            Rule::None(reason) => Rule::None(reason),
            Rule::Failed(error) => Rule::Failed(error),
        }
    }

    /// The result, or an error that names the op and the user's line.
    pub fn of(self, op: &OpRef, loc: Loc) -> Result<T, TransformError> {
        match self {
            Rule::Some(value) => Ok(value),
            Rule::None(reason) => Err(TransformError { op: op.mnemonic(), loc, reason }),
            Rule::Failed(error) => Err(error),
        }
    }
}

impl<T> From<Result<T, TransformError>> for Rule<T> {
    fn from(result: Result<T, TransformError>) -> Self {
        match result {
            Ok(value) => Rule::Some(value),
            Err(error) => Rule::Failed(error),
        }
    }
}

/// A region op without its unused operands and results.
#[derive(Clone, Debug)]
pub struct Pruned {
    /// The smaller op.
    pub op: OpRef,
    /// The positions of the operands that it keeps.
    pub inputs: Vec<usize>,
    /// The positions of the results that it keeps, including every requested result.
    pub outputs: Vec<usize>,
}

/// The effect of running an op, in addition to its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No effect: the op may be removed, duplicated, moved.
    Pure,
    /// Takes part in a collective: every replica must run it equally often and in the same order.
    /// So it is not moved, unless every replica moves it in the same way.
    Collective,
}

/// An operand of a linear equation, as its transpose rule sees it.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A value that does not depend on the linear inputs.
    Known(Var),
    /// A value that depends on the linear inputs; only its type is known when cotangents flow back.
    Linear(TensorType),
}

impl Operand {
    /// The variable of a known operand.
    pub fn known(&self) -> Option<Var> {
        match self {
            Operand::Known(var) => Some(*var),
            Operand::Linear(_) => None,
        }
    }

    /// The type of a linear operand.
    pub fn linear(&self) -> Option<&TensorType> {
        match self {
            Operand::Known(_) => None,
            Operand::Linear(ty) => Some(ty),
        }
    }

    /// The operand's type.
    pub fn ty<'a>(&'a self, b: &'a Builder) -> &'a TensorType {
        match self {
            Operand::Known(var) => b.ty(*var),
            Operand::Linear(ty) => ty,
        }
    }

    /// True for [`Operand::Linear`].
    pub fn is_linear(&self) -> bool {
        matches!(self, Operand::Linear(_))
    }
}

/// An example of an op, which drives every generic test: inference, evaluation, XLA, vmap, derivatives, text.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The op with its attributes.
    pub op: OpRef,
    /// Operands in the op's domain, away from kinks if the op is differentiable.
    pub inputs: Vec<Array>,
    /// The greatest error allowed between XLA and the reference semantics, relative to max(1,
    /// |value|); 0 means bit-identical.
    pub tolerance: f64,
    /// True if derivatives are compared with finite differences at these inputs.
    pub differentiable: bool,
}

impl Sample {
    /// A sample that XLA must reproduce bit-identically. Its derivatives are checked if an operand
    /// is a float.
    pub fn new(op: impl Op, inputs: Vec<Array>) -> Sample {
        let differentiable = inputs.iter().any(|input| input.ty().dtype.is_float());
        Sample { op: OpRef::new(op), inputs, tolerance: 0.0, differentiable }
    }

    /// Sets the error that XLA's results may have.
    pub fn tolerance(mut self, tolerance: f64) -> Sample {
        self.tolerance = tolerance;
        self
    }

    /// Disables the check by finite differences: the inputs lie on a kink or are not finite.
    pub fn not_differentiable(mut self) -> Sample {
        self.differentiable = false;
        self
    }
}

/// An op with its attributes: type rule, reference semantics, derivatives, batching, lowering.
///
/// Rules emit into a [`Builder`]; they may use any op.
pub trait Op: OpStruct {
    /// The types of the results, or the reason why these operands do not fit.
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError>;

    /// The effect of the op; by default the effect of its bodies.
    fn effect(&self) -> Effect {
        effect_of(&self.funcs())
    }

    /// Reference semantics: plain loops in the op's dtype; integers wrap; floats in f64 rounded after each op.
    fn eval(&self, inputs: &[Array]) -> Vec<Array>;

    /// Emits the op for a batch. Operand `i` has the batch as its leading axis (of extent
    /// `cx.size`) if `batched[i]`; at least one operand has it. Returns each result, with true if
    /// the batch is its leading axis.
    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched;

    /// True if the op or a body of it is a collective over the axis of this vmap.
    fn names_axis(&self, cx: &VmapContext) -> bool {
        self.funcs().iter().any(|func| func.eqns.iter().any(|eqn| eqn.op.names_axis(cx)))
    }

    /// The tangents of the results, linear in `tangents`; `None` is zero. `outputs` are the op's
    /// own results. Called only if at least one tangent is given; operands that are not floats
    /// never have a tangent.
    fn jvp(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        outputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<Slopes>;

    /// Emits the op and its derivative. Region ops override it: they must build the primal and the
    /// tangent part together ([`Mode::Forward`]), or as two ops with residuals between them
    /// ([`Mode::Linearize`]).
    fn differentiate(
        &self,
        this: &OpRef,
        b: &mut Builder,
        mode: Mode,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<(Vec<Var>, Slopes)> {
        let _ = mode;
        let outputs = b.emit_ref(this.clone(), inputs);
        self.jvp(b, inputs, &outputs, tangents).map(|tangents| (outputs, tangents))
    }

    /// The cotangents of the linear operands, from the cotangents of the results; `None` is zero.
    /// At least one cotangent is given.
    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes>;

    /// Emits StableHLO. `results` are the inferred result types.
    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults;

    /// True if each result depends only on the operand at its position, and waiting for many
    /// operands takes as long as for one. Then two such ops are better merged into one op with the
    /// operands of both.
    fn joins(&self) -> bool {
        false
    }

    /// The op without the operands and results that the `used` results do not need; `None` if all
    /// are needed.
    fn prune(&self, used: &[bool]) -> Option<Pruned> {
        let _ = used;
        None
    }

    /// True if a backward pass recomputes the op instead of keeping its result: ops that only move
    /// or repeat data.
    fn recompute(&self) -> bool {
        false
    }

    /// True if the op applies one function at every element. Operands have one shape, but some may be scalars.
    fn pointwise(&self) -> bool {
        false
    }

    /// The multiplications of the op on operands of these types, if platforms have a library for
    /// it. They do not use the library inside a kernel. 0 if a kernel computes the op.
    fn library_work(&self, inputs: &[TensorType]) -> usize {
        let _ = inputs;
        0
    }

    /// True if the reference semantics are bit-identical to XLA, so that results from constants may
    /// be computed at compile time.
    fn exact(&self) -> bool {
        false
    }

    /// Emits equations with bit-identical results that XLA compiles to fewer kernels, although
    /// there are more equations or they move more bytes. It is for platforms on which a launch
    /// costs more than that. `None` if there are none.
    fn launch_less(&self, b: &mut Builder, inputs: &[Var]) -> Option<Vec<Var>> {
        let _ = (b, inputs);
        None
    }

    /// True if an element of a result depends on many elements of an operand, as in a reduction, a
    /// sort or a product.
    fn reads_many(&self) -> bool {
        false
    }

    /// The number of rounds if the op is a loop; a guess if it is known only at run time.
    fn turns(&self) -> Option<usize> {
        None
    }

    /// The body, if applying the op is equivalent to running the body once.
    fn inline_body(&self) -> Option<Arc<Func>> {
        None
    }

    /// The function that replaces the op after the last transform; `None` for ops that run
    /// themselves.
    fn settled(&self, inputs: &[TensorType]) -> Option<Func> {
        let _ = inputs;
        None
    }

    /// True if [`Op::of_platform`] or [`Op::for_platform`] replaces the op on some platform.
    fn asks_platform(&self) -> bool {
        false
    }

    /// The function that replaces the op on a platform; `None` for an op that stays. `launches` is
    /// true if the platform launches each kernel.
    fn for_platform(&self, launches: bool, inputs: &[TensorType]) -> Option<Func> {
        let _ = (launches, inputs);
        None
    }

    /// The value of the single scalar result, if it depends on the platform. `launches` is true if
    /// the platform launches each kernel.
    fn of_platform(&self, launches: bool) -> Option<Scalar> {
        let _ = launches;
        None
    }

    /// The body for the first operand `choice`, if the first operand chooses between bodies. The
    /// body runs on the other operands.
    fn branch(&self, choice: Scalar) -> Option<Arc<Func>> {
        let _ = choice;
        None
    }

    /// The reason that the op cannot run, if it represents a linear function with only its
    /// transpose known.
    fn transpose_only(&self) -> Option<&'static str> {
        None
    }

    /// True if `checkpoint` with this policy keeps the results for the backward pass.
    fn saved_by(&self, policy: &Save) -> bool {
        *policy == Save::Everything
    }
}

/// The types of the results of `op`, for its [`Op::eval`].
pub(super) fn result_types(op: &impl Op, inputs: &[Array]) -> Vec<TensorType> {
    let types: Vec<TensorType> = inputs.iter().map(|input| input.ty().clone()).collect();
    op.infer(&types).expect("eval is given well-typed operands")
}

/// [`Effect::Collective`] if an equation in the bodies is a collective.
pub(super) fn effect_of(bodies: &[&Arc<Func>]) -> Effect {
    let any =
        bodies.iter().any(|body| body.eqns.iter().any(|eqn| eqn.op.effect() == Effect::Collective));
    if any { Effect::Collective } else { Effect::Pure }
}

/// A shared op. Two ops are equal if mnemonic and attributes are equal.
#[derive(Clone)]
pub struct OpRef(Arc<dyn Op>);

impl OpRef {
    /// Makes a shared op.
    pub fn new(op: impl Op) -> Self {
        OpRef(Arc::new(op))
    }

    /// The op itself, if it is a `T`.
    pub fn downcast<T: Op>(&self) -> Option<&T> {
        let op: &dyn Any = &*self.0;
        op.downcast_ref()
    }
}

impl std::ops::Deref for OpRef {
    type Target = dyn Op;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for OpRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for OpRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.mnemonic() == other.mnemonic() && self.attributes() == other.attributes())
    }
}

impl Eq for OpRef {}

impl Hash for OpRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.mnemonic().hash(state);
        self.attributes().hash(state);
    }
}
