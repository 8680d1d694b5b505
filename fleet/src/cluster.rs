//! The executors of a Ballista cluster: a statement during which one is lost runs again.
//!
//! Ballista 55 repeats the tasks of a lost executor by itself, but not reliably: some statements are never answered then,
//! and some get rows twice. So an answer counts only if all executors that were there at its start are there when it begins
//! to arrive.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use anyhow::{Context, bail};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// How often a statement is started.
const ATTEMPTS: u32 = 4;

/// How often executors are looked for while a statement runs.
const INTERVAL: Duration = Duration::from_secs(2);

/// How long the scheduler may take to answer, and an executor to accept a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// A cluster, by the `HOST:PORT` of its scheduler.
#[derive(Debug)]
pub(crate) struct Cluster {
    scheduler: String,
    http: reqwest::Client,
}

/// An executor, as the scheduler lists it.
#[derive(Debug, Deserialize)]
struct Listed {
    id: String,
    host: String,
    port: u16,
}

/// The ids of executors.
type Executors = BTreeSet<String>;

impl Cluster {
    pub(crate) fn new(scheduler: &str) -> anyhow::Result<Self> {
        Ok(Self {
            scheduler: scheduler.to_owned(),
            // Statements do not go through a proxy either.
            http: reqwest::Client::builder()
                .no_proxy()
                .timeout(PATIENCE)
                .build()?,
        })
    }

    /// Starts a statement, and again if an executor is lost before its answer begins.
    pub(crate) async fn stream<S>(
        &self,
        start: impl Fn() -> S,
    ) -> anyhow::Result<SendableRecordBatchStream>
    where
        S: Future<Output = anyhow::Result<SendableRecordBatchStream>>,
    {
        for _ in 0..ATTEMPTS {
            let executors = self.reachable().await?;
            if executors.is_empty() {
                bail!("the cluster at {} has no executors", self.scheduler);
            }
            let answer = async { first_batch(start().await?).await };
            tokio::select! {
                answer = answer => {
                    if !self.is_any_lost(&executors).await? {
                        return answer;
                    }
                }
                () = self.loss(&executors) => {}
            }
            eprintln!(
                "heapline-fleet: an executor of the cluster was lost; running the statement again"
            );
        }
        bail!(
            "the cluster at {} lost executors during each of {ATTEMPTS} attempts",
            self.scheduler
        )
    }

    /// Waits until an executor is lost.
    async fn loss(&self, executors: &Executors) {
        loop {
            sleep(INTERVAL).await;
            // A scheduler that is gone ends the statement, too.
            if self.is_any_lost(executors).await.unwrap_or(false) {
                return;
            }
        }
    }

    /// Returns true if one of some executors is not listed any more, or does not accept connections.
    async fn is_any_lost(&self, executors: &Executors) -> anyhow::Result<bool> {
        let there = self.reachable().await?;
        Ok(!executors.is_subset(&there))
    }

    /// The executors that are listed and accept connections.
    async fn reachable(&self) -> anyhow::Result<Executors> {
        let listed = self.listed().await?;
        let reached = futures::future::join_all(listed.into_iter().map(async |executor| {
            let connection = TcpStream::connect((&*executor.host, executor.port));
            let is_there = timeout(PATIENCE, connection)
                .await
                .is_ok_and(|it| it.is_ok());
            is_there.then_some(executor.id)
        }));
        Ok(reached.await.into_iter().flatten().collect())
    }

    async fn listed(&self) -> anyhow::Result<Vec<Listed>> {
        let url = format!("http://{}/api/executors", self.scheduler);
        let list = async {
            let answer = self.http.get(&url).send().await?;
            let body = answer.error_for_status()?.bytes().await?;
            anyhow::Ok(serde_json::from_slice(&body)?)
        };
        list.await.with_context(|| {
            format!("cannot list the executors of the cluster at {url}; the scheduler needs its feature rest-api")
        })
    }
}

/// Waits for the first rows of an answer, which come when all tasks are done.
async fn first_batch(
    mut stream: SendableRecordBatchStream,
) -> anyhow::Result<SendableRecordBatchStream> {
    let schema = stream.schema();
    let first = stream.next().await.transpose()?;
    let all = futures::stream::iter(first.map(Ok)).chain(stream);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
}
