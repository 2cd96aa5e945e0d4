import { PageHead, Panel } from './parts';
import type { Answer, Call, Route } from './route';

export const GETTING_STARTED_ROUTES: readonly Route[] = [
  {
    method: 'get',
    path: '/getting-started',
    act: 'view',
    title: 'Getting started',
    handle: gettingStarted,
  },
];

async function gettingStarted({ viewer }: Call): Promise<Answer> {
  return {
    page: (
      <>
        <PageHead title="Getting started" />
        <Panel>
          <p>{viewer.account.name}</p>
        </Panel>
      </>
    ),
  };
}
