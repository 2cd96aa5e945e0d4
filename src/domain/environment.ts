/** Environment of a merchant, as people name it. */
export type Env = 'sandbox' | 'live';

export function isLive(env: Env): boolean {
  return env === 'live';
}

export function envOf(livemode: boolean): Env {
  return livemode ? 'live' : 'sandbox';
}
