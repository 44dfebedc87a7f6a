/*
 * noop.c - the command whose launch is measured: static, and ends at once.
 *
 * Runs in: the sessions of tests/bench/run, and beside them.
 */
int main(void)
{
	return 0;
}
