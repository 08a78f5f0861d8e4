/* Heat in a plate whose edges meet: what flows out at one side comes in at the other.
 *     cc -O2 -shared -fPIC -o libsimulation.so simulation.c */
#include <stddef.h>

/* One step, from now to next. Each cell gives `rate` of its difference to each neighbour. */
void step(const double *now, double *next, size_t rows, size_t columns, double rate) {
    for (size_t i = 0; i < rows; i++) {
        const double *row = now + i * columns;
        const double *above = now + (i + rows - 1) % rows * columns;
        const double *below = now + (i + 1) % rows * columns;
        for (size_t j = 0; j < columns; j++) {
            double left = row[(j + columns - 1) % columns], right = row[(j + 1) % columns];
            next[i * columns + j] =
                row[j] + rate * (above[j] + below[j] + left + right - 4 * row[j]);
        }
    }
}

/* Cool every cell to `limit` at most, in place; how much heat that took. */
double cool(double *cells, size_t n, double limit) {
    double taken = 0;
    for (size_t i = 0; i < n; i++)
        if (cells[i] > limit) {
            taken += cells[i] - limit;
            cells[i] = limit;
        }
    return taken;
}
