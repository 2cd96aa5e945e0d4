export const LIVE_DEMO_ALLOWED = 'yes';

interface LiveSettings {
  LIVE_CONNECTORS: string;
  ALLOW_LIVE_DEMO: string;
}

/** Whether real money may be sent: a live bank is configured, and this is not a demo. */
export function isLive({ LIVE_CONNECTORS, ALLOW_LIVE_DEMO }: LiveSettings): boolean {
  return LIVE_CONNECTORS.trim() !== '' && ALLOW_LIVE_DEMO !== LIVE_DEMO_ALLOWED;
}

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
