import { render } from "preact";
import { App } from "./app";
import { followKeys } from "./keys";
import { followHistory } from "./state/state";
import { followTheme } from "./theme";
import { followTips } from "./widgets/tip";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/layout.css";
import "./styles/top.css";
import "./styles/timeline.css";
import "./styles/views.css";
import "./styles/heap.css";

followTheme();
followHistory();
followKeys();
followTips();
render(<App />, document.getElementById("app") as HTMLElement);
