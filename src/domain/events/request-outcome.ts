export const REQUEST_OUTCOMES = ['succeeded', 'refused', 'failed'] as const;

export type RequestOutcome = (typeof REQUEST_OUTCOMES)[number];

/** The caller should change a refused request, and repeat a failed one. */
export function getOutcome(status: number): RequestOutcome {
  if (status < 400) return 'succeeded';
  return status < 500 ? 'refused' : 'failed';
}
