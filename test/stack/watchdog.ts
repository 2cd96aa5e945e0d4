import { spawn } from 'node:child_process';

export interface Watchdog {
  dismiss(): void;
}

/**
 * Ends servers and removes their folder when this process dies without doing so, by whatever
 * signal: even SIGKILL closes the pipe that the watchdog reads, where an exit handler would not
 * run. It has a session of its own, so that Ctrl-C in the terminal does not take it along.
 */
export function startWatchdog(pids: readonly number[], folder: string): Watchdog {
  const script = `
    folder=$1; shift
    read -r word
    [ "$word" = done ] && exit
    kill "$@" 2>/dev/null
    sleep 3
    kill -9 "$@" 2>/dev/null
    rm -rf "$folder"`;
  const shell = spawn('sh', ['-c', script, 'test-servers-watchdog', folder, ...pids.map(String)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.unref();
  return {
    dismiss() {
      shell.stdin.end('done\n');
    },
  };
}
