import { hostname, userInfo } from 'node:os';

/** User of a machine's system who runs a command. */
export interface SystemUser {
  door: 'command_line';
  system_user: string;
  host: string;
}

export function systemUser(): SystemUser {
  return { door: 'command_line', system_user: nameOfUser(), host: hostname() };
}

function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a number that has no name.
    return String(process.getuid?.() ?? 'unknown');
  }
}
