// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a fuzz target without libFuzzer, on the files and directories of its arguments. So seeds,
 * and inputs that once crashed the target, become ordinary tests that any compiler builds. A path
 * that does not exist is skipped, so that a target needs neither seeds nor past crashes. A run
 * without any input fails.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

static void die(const char *path)
{
	perror(path);
	exit(1);
}

static void replay_file(const char *path, size_t size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(size + !size);

	if (!file || !data || fread(data, 1, size, file) != size)
		die(path);
	fclose(file);
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	inputs++;
}

static void replay(const char *path)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (stat(path, &st) < 0)
		return;
	if (S_ISREG(st.st_mode)) {
		replay_file(path, st.st_size);
		return;
	}
	dir = opendir(path);
	if (!dir)
		die(path);
	while ((entry = readdir(dir))) {
		char name[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		replay(name);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%lu checks\n", inputs);
	return inputs ? 0 : 1;
}
