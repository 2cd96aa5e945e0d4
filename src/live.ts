/** Value of `ALLOW_LIVE_DEMO` that lets live banks be served by what is made for trying things out. */
export const LIVE_DEMO_ALLOWED = 'yes';

interface LiveSettings {
  LIVE_CONNECTORS: string;
  ALLOW_LIVE_DEMO: string;
}

/** Whether real money moves here: a live bank is named, and nothing says that it is a trial. */
export function isLive({ LIVE_CONNECTORS, ALLOW_LIVE_DEMO }: LiveSettings): boolean {
  return LIVE_CONNECTORS.trim() !== '' && ALLOW_LIVE_DEMO !== LIVE_DEMO_ALLOWED;
}

/** Says what a process with live banks may not be given; empty without any. */
export function liveFaults(
  settings: LiveSettings & { PUBLIC_URL: string; WEBHOOK_ALLOW_PRIVATE: string },
): string[] {
  if (!isLive(settings)) return [];
  const { PUBLIC_URL, WEBHOOK_ALLOW_PRIVATE } = settings;
  return [
    ...(PUBLIC_URL.startsWith('https://')
      ? []
      : [`PUBLIC_URL: ${PUBLIC_URL} has to be https while LIVE_CONNECTORS names a bank`]),
    ...(WEBHOOK_ALLOW_PRIVATE === ''
      ? []
      : ['WEBHOOK_ALLOW_PRIVATE: has to be unset while LIVE_CONNECTORS names a bank']),
  ];
}
