import { withdrawServers } from './servers';

// Other projects of the same run have servers: a unit test that asks for one fails all the same.
withdrawServers();
