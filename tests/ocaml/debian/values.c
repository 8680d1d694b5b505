/* For frama-c: it parses and normalises this, and prints it again. */
#include <stddef.h>

struct node { int value; struct node *next; };

static int table[64];

/*@ requires n >= 0 && n < 64;
    assigns table[n];
    ensures table[n] == v; */
void put(int n, int v) { table[n] = v; }

/*@ requires \valid_read(a + (0 .. n - 1));
    assigns \nothing; */
int largest(const int *a, size_t n)
{
  int best = a[0];
  for (size_t i = 1; i < n; i++)
    if (a[i] > best) best = a[i];
  return best;
}

int total(const struct node *list)
{
  int sum = 0;
  for (; list; list = list->next) {
    switch (list->value & 3) {
    case 0: sum += list->value; break;
    case 1: sum -= list->value; break;
    default: sum ^= list->value;
    }
  }
  return sum;
}

int main(void)
{
  struct node c = { 3, NULL }, b = { 2, &c }, a = { 1, &b };
  for (int i = 0; i < 64; i++) put(i, i * i);
  return largest(table, 64) + total(&a) > 0 ? 0 : 1;
}
