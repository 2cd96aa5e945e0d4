/** Name for operators and in URLs; the API has `livemode`. */
export const ENVIRONMENTS = ['sandbox', 'live'] as const;
export type Env = (typeof ENVIRONMENTS)[number];

export function isLive(env: Env): boolean {
  return env === 'live';
}

export function parseEnvironments(text: string): Env[] {
  const names = text.split(',');
  return ENVIRONMENTS.filter((environment) => names.includes(environment));
}

export function toEnv(livemode: boolean): Env {
  return livemode ? 'live' : 'sandbox';
}
