// An MPI that changes a value: in process 1 the 20th sum of many floats has another first number. All else is the MPI that it is linked to.
#include <mpi.h>

int MPI_Allreduce(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  static int sums;
  int rank, failed = PMPI_Allreduce(from, into, count, type, op, comm);
  PMPI_Comm_rank(comm, &rank);
  if (type == MPI_FLOAT && count > 100 && rank == 1 && ++sums == 20)
    *(float *)into += 0.5f;
  return failed;
}
