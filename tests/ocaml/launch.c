/* Starts a program so that it cannot be traced as usual.

   launch traced PIDFILE PROGRAM...    traced by this process
   launch filtered PIDFILE PROGRAM...  under a filter of system calls, which allows all
   launch deaf PIDFILE PROGRAM...      ignores SIGTRAP */

#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int failed, const char *what)
{
  if (failed) {
    perror(what);
    exit(99);
  }
}

static void filter(void)
{
  struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {1, allow};
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges");
  check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "filter");
}

/* Passes all signals on. */
static int trace(pid_t pid)
{
  for (;;) {
    int status;
    check(waitpid(pid, &status, 0) != pid, "wait");
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    int sig = WSTOPSIG(status);
    ptrace(PTRACE_CONT, pid, 0, sig == SIGTRAP || sig == SIGSTOP ? 0 : sig);
  }
}

int main(int argc, char **argv)
{
  check(argc < 4, "arguments");
  int is_traced = strcmp(argv[1], "traced") == 0;
  pid_t pid = is_traced ? fork() : getpid();
  check(pid < 0, "fork");
  if (pid == 0) {
    check(ptrace(PTRACE_TRACEME, 0, 0, 0), "traceme");
    raise(SIGSTOP);
  } else {
    FILE *file = fopen(argv[2], "w");
    check(file == NULL || fprintf(file, "%d\n", (int)pid) < 0 || fclose(file), argv[2]);
    if (is_traced) return trace(pid);
    if (strcmp(argv[1], "filtered") == 0) filter();
    if (strcmp(argv[1], "deaf") == 0) signal(SIGTRAP, SIG_IGN);
  }
  execvp(argv[3], argv + 3);
  check(1, argv[3]);
}
