//! The engine that runs statements on the tables of a dataset: DataFusion in this process, or a
//! Ballista cluster.

use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use datafusion::arrow::array::RecordBatch;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::context::SQLOptions;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};

use futures::TryStreamExt;

use crate::cluster::Cluster;
use crate::dataset::{Dataset, TABLES};

/// How long to wait for the scheduler of a cluster to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Paths of 100,000 runs do not fit into Ballista's default of 16 MiB for a message.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// The place where statements run.
#[derive(Clone, Debug)]
pub enum Place {
    /// This process, with so many bytes of memory; larger sorts and aggregations use temporary files.
    Local {
        /// The limit, in bytes.
        memory: usize,
    },
    /// A Ballista cluster, by the `HOST:PORT` of its scheduler.
    Cluster {
        /// The address.
        scheduler: String,
    },
}

/// Runs statements that only read.
pub struct Engine {
    context: SessionContext,
    /// Answers what a cluster cannot: schemas are not sent to it.
    schemas: Option<SessionContext>,
    cluster: Option<Cluster>,
}

impl Engine {
    /// Makes the tables of a dataset known to an engine.
    pub async fn open(dataset: &Dataset, place: &Place) -> anyhow::Result<Self> {
        let local = |config, memory| -> anyhow::Result<SessionContext> {
            let runtime = RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
                .build_arc()?;
            Ok(SessionContext::new_with_config_rt(config, runtime))
        };
        let engine = match place {
            Place::Local { memory } => Self {
                context: local(configured(SessionConfig::new()), *memory)?,
                schemas: None,
                cluster: None,
            },
            Place::Cluster { scheduler } => {
                reach(scheduler)?;
                let config = configured(SessionConfig::new_with_ballista())
                    .with_ballista_grpc_client_max_message_size(MAX_MESSAGE_BYTES);
                let state = SessionStateBuilder::new()
                    .with_config(config)
                    .with_default_features()
                    .build();
                let url = format!("df://{scheduler}");
                Self {
                    context: SessionContext::remote_with_state(&url, state).await?,
                    schemas: Some(local(configured(SessionConfig::new()), 64 << 20)?),
                    cluster: Some(Cluster::new(scheduler)?),
                }
            }
        };
        for context in engine.schemas.iter().chain([&engine.context]) {
            register(context, dataset).await?;
        }
        Ok(engine)
    }

    /// Uses tables that are already registered, as tests do.
    #[must_use]
    pub fn with_context(context: SessionContext) -> Self {
        Self {
            context,
            schemas: None,
            cluster: None,
        }
    }

    /// Plans a statement, and refuses those that write.
    async fn plan(&self, sql: &str) -> anyhow::Result<DataFrame> {
        let options = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let plan = self.context.state().create_logical_plan(sql).await?;
        options
            .verify_plan(&plan)
            .context("datasets are read only")?;
        let context = match (&self.schemas, &plan) {
            (Some(schemas), LogicalPlan::DescribeTable(_)) => schemas,
            _ => &self.context,
        };
        Ok(context.execute_logical_plan(plan).await?)
    }

    /// Starts a statement. The schema of its answer is known from the stream.
    pub async fn stream(&self, sql: &str) -> anyhow::Result<SendableRecordBatchStream> {
        let start = async || Ok(self.plan(sql).await?.execute_stream().await?);
        match &self.cluster {
            Some(cluster) => cluster.stream(start).await,
            None => start().await,
        }
    }

    /// Runs a statement, and returns its whole answer.
    pub async fn collect(&self, sql: &str) -> anyhow::Result<Vec<RecordBatch>> {
        Ok(self.stream(sql).await?.try_collect().await?)
    }
}

fn configured(config: SessionConfig) -> SessionConfig {
    config
        .with_information_schema(true)
        // The footers of all files would be read before each statement.
        .with_collect_statistics(false)
}

/// A scheduler that cannot be reached is a clear error now, and not one from within a statement.
fn reach(scheduler: &str) -> anyhow::Result<()> {
    let addresses = scheduler.to_socket_addrs().with_context(|| {
        format!("{scheduler:?} is not the address of a scheduler; give HOST:PORT")
    })?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) => Err(error)
            .with_context(|| format!("cannot reach the scheduler of the cluster at {scheduler}")),
        None => bail!("{scheduler} has no address"),
    }
}

/// Registers each table as the list of its files, so that runs that are being added are not read.
async fn register(context: &SessionContext, dataset: &Dataset) -> anyhow::Result<()> {
    if let Some(bucket) = dataset.bucket() {
        let (url, store) = bucket.store();
        context.register_object_store(url, store);
    }
    for table in TABLES {
        dataset.check_files(table)?;
        let urls = dataset
            .files(table)
            .map(|url| ListingTableUrl::try_new(url, None))
            .collect::<Result<Vec<_>, _>>()?;
        let options = ListingOptions::new(Arc::new(ParquetFormat::default()));
        let newest = urls.last().context("the dataset has no runs")?;
        let schema = options
            .infer_schema(&context.state(), newest)
            .await
            .with_context(|| format!("cannot read {newest}"))?;
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(options)
            .with_schema(schema);
        context.register_table(table, Arc::new(ListingTable::try_new(config)?))?;
    }
    Ok(())
}
