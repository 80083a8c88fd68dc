/* A ring buffer of numbers, and a program that tries it. */
#include <stdio.h>
#include <stdlib.h>

#define CAPACITY 64

struct ring {
    double items[CAPACITY];
    unsigned int first, length;
    struct ring *next;
};

enum state { EMPTY, PARTIAL = 2, FULL };

static const char *const names[] = { "empty", "partial", "full" };
static unsigned long long pushed = 0x1FULL, popped = 0;

static enum state state_of(const struct ring *r)
{
    return r->length == 0 ? EMPTY : r->length < CAPACITY ? PARTIAL : FULL;
}

int push(struct ring *r, double value)
{
    if (state_of(r) == FULL) {
        fprintf(stderr, "no room for %g\n", value);
        return -1;
    }
    r->items[(r->first + r->length++) % CAPACITY] = value;
    pushed += 1;
    return 0;
}

int pop(struct ring *r, double *value)
{
    if (r->length == 0)
        return -1;
    *value = r->items[r->first];
    r->first = (r->first + 1) % CAPACITY;
    --r->length;
    popped++;
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of what the ring holds; 0 if that is nothing. */
double median(const struct ring *r)
{
    double copy[CAPACITY];
    unsigned int i;
    for (i = 0; i < r->length; i++)
        copy[i] = r->items[(r->first + i) & (CAPACITY - 1)];
    qsort(copy, r->length, sizeof copy[0], compare);
    switch (r->length) {
    case 0:
        return 0.0;
    case 1: case 2:
        return copy[0] * .5 + copy[r->length - 1] * 5e-1;
    default:
        break;
    }
    return copy[r->length / 2];
}

int main(int argc, char **argv)
{
    struct ring r = { .first = 0, .length = 0, .next = NULL };
    double value = 1.0;
    int n = argc > 1 ? atoi(argv[1]) : 100;
    while (n-- > 0) {
        value = value * 1.5e0 - (n & 1 ? 3.25 : -'\x02');
        if (push(&r, value) != 0 && pop(&r, &value) == 0)
            push(&r, value);
    }
    do {
        printf("%s: %.3f of %u (%llu, %llu)\n", names[state_of(&r) ? 1 : 0], median(&r), r.length, pushed, popped);
    } while (pop(&r, &value) == 0);
    return EXIT_SUCCESS;
}
