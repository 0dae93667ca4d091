// An MPI whose sums take longer, as between hosts that are far apart: every MPI_Allreduce waits for PODRACER_DELAY microseconds
// first. All else is the MPI that it is linked to.
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

int MPI_Allreduce(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const char *delay = getenv("PODRACER_DELAY");
  long micros = delay ? atol(delay) : 0;
  struct timespec wait = {micros / 1000000, micros % 1000000 * 1000};
  nanosleep(&wait, NULL);
  return PMPI_Allreduce(from, into, count, type, op, comm);
}
