/** Name for operators and in URLs; the API has `livemode`. */
export type Env = 'sandbox' | 'live';

export function isLive(env: Env): boolean {
  return env === 'live';
}

export function toEnv(livemode: boolean): Env {
  return livemode ? 'live' : 'sandbox';
}
