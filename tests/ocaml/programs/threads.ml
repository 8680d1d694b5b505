(* System threads that allocate at the same time and hand blocks to each other. *)

let lock = Mutex.create ()
let results = ref []

let work id () =
  let mine = ref [] in
  for i = 1 to 40_000 do
    mine := (id, string_of_int i) :: !mine;
    if i mod 10_000 = 0 then Thread.yield ()
  done;
  Mutex.lock lock;
  results := (id, List.length !mine) :: !results;
  Mutex.unlock lock

let () =
  let threads = List.init 6 (fun id -> Thread.create (work id) ()) in
  List.iter Thread.join threads;
  List.iter (fun (id, n) -> Printf.printf "thread %d: %d\n" id n) (List.sort compare !results)
